// When a server refuses the trap gate, or what comes over the bell as a listener for it.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "binding_without_client.h"
#include "clerk/domain.h"
#include "refused_calls.h"
#include "trap/trap_server.h"

namespace lrpc::server {
namespace {

class TrapGate : public testing::Test {
 protected:
  static std::shared_ptr<ServedInterface> empty() {
    auto interface = std::make_shared<ServedInterface>();
    interface->pdl = &kPdl;
    return interface;
  }
  static constexpr AStackClass kClass{64, 0, 1};
  static constexpr Pdl kPdl{.interface = {.name = "Empty"}, .classes = {&kClass, 1}, .procedures = {}, .text = {}};
};

TEST_F(TrapGate, a_listener_of_a_binding_for_another_gate_is_refused) {
  const ServerOptions options;
  TrapServer traps(options, std::make_shared<Accounts>(options));
  const auto binding = binding_without_client(empty());
  ASSERT_NE(binding, nullptr);
  const Status refused = traps.adopt(binding, UniqueFd(::dup(STDERR_FILENO)));
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  EXPECT_NE(refused.error().text.find("was not imported for the trap gate"), std::string::npos) << refused.error().text;
  ServerStatistics counted;
  traps.count(counted);
  EXPECT_EQ(counted.trap_listeners, 0U);
}

TEST_F(TrapGate, is_refused_by_a_server_without_proc_and_the_other_gates_are_not) {
#ifdef SYS_readlink
  constexpr std::uint32_t kReadLink = SYS_readlink;
#else
  constexpr std::uint32_t kReadLink = SYS_readlinkat;
#endif
  Domain domain({});
  const auto interface = empty();
  const shim::Credentials client{::getpid(), ::getuid(), ::getgid()};
  bool refused = false;
  Status trap;
  Status adaptive = Errc::timed_out;
  std::thread([&] {
    refused = testing_lrpc::refuse_calls(kReadLink, ENOENT);
    trap = domain.bindings().room_for(client, 0, *interface, shim::Gate::trap);
    adaptive = domain.bindings().room_for(client, 0, *interface, shim::Gate::adaptive);
  }).join();
  if (!refused) GTEST_SKIP() << "no filters of seccomp can be set";
  EXPECT_EQ(trap.code(), Errc::not_supported);
  EXPECT_NE(trap.error().text.find("no /proc of its process namespace"), std::string::npos) << trap.error().text;
  EXPECT_TRUE(adaptive) << adaptive.error().message();
}

}  // namespace
}  // namespace lrpc::server
