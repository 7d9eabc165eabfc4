// Imports that wait while the nameserver is restarted, and lack memory when they connect to it again (LRPC §3.1).
#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "counting_policy.h"
#include "eventually.h"
#include "refused_calls.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using namespace std::chrono_literals;

constexpr auto kCannotBeRefused = "no filters of seccomp can be set";

struct LackingImport {
  bool possible = false;  ///< Calls can be refused here.
  int refused = 0;        ///< How often it lacked memory.
  lrpc::Result<Conformance::Client> client = Errc::timed_out;
};

/// An import that connects to the nameserver, and then lacks memory for its next `lacks` connections.
LackingImport import_lacking(const World& world, const std::string& name, std::chrono::milliseconds timeout,
                             int lacks) {
  LackingImport import;
  bool has_connected = false;
  const auto decide = [&](pid_t) {
    if (!std::exchange(has_connected, true) || import.refused == lacks) return 0;
    ++import.refused;
    return ENOMEM;
  };
  {
    const DecidedCalls connections(at_each_call(SYS_connect, SECCOMP_RET_USER_NOTIF), decide);
    import.possible = connections.can_be_had();
    if (import.possible) import.client = world.import(name, {.timeout = timeout, .watcher = false});
  }
  return import;
}

/// Waits until the nameserver has been asked, or the import is over.
void await_import(const CountingPolicy& asked, const std::future<LackingImport>& import) {
  EXPECT_TRUE(eventually([&] { return asked.imports != 0 || import.wait_for(0s) == std::future_status::ready; }));
}

TEST(LackingImports, that_wait_for_a_nameserver_go_on_when_the_lack_has_passed) {
  const auto policy = std::make_shared<CountingPolicy>();
  World world({.policy = policy});
  auto importing = std::async(std::launch::async, [&] { return import_lacking(world, "late", kPatience, 2); });
  await_import(*policy, importing);
  world.stop_nameserver();
  world.start_nameserver();
  const Process server = world.start_server({"late"});
  LackingImport import = importing.get();
  if (!import.possible) GTEST_SKIP() << kCannotBeRefused;
  ASSERT_TRUE(import.client) << import.client.error().message();
  EXPECT_EQ(import.refused, 2);
  EXPECT_EQ(import.client->Add(1, 2).value(), 3);
}

TEST(LackingImports, that_wait_for_a_nameserver_name_a_lack_that_lasts_when_their_time_is_over) {
  // On a stalled machine the time may be over before the import connects again: then try again.
  for (int refused = 0; refused == 0;) {
    const auto policy = std::make_shared<CountingPolicy>();
    World world({.policy = policy});
    auto importing = std::async(
        std::launch::async, [&] { return import_lacking(world, "nobody", 500ms, std::numeric_limits<int>::max()); });
    await_import(*policy, importing);
    world.stop_nameserver();
    const LackingImport import = importing.get();
    if (!import.possible) GTEST_SKIP() << kCannotBeRefused;
    refused = import.refused;
    if (refused == 0) continue;
    EXPECT_EQ(import.client.code(), Errc::system_error);
    EXPECT_EQ(import.client.error().message().find("connect to "), 0U) << import.client.error().message();
  }
}

}  // namespace
}  // namespace testing_lrpc
