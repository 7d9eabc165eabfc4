// The size of E-stacks: entry stubs copy arguments and results onto them, and those may be large.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "eventually.h"
#include "gates.h"
#include "large.client.h"
#include "large.server.h"
#include "lrpc/client.h"
#include "lrpc/server.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using Text = lrpc::String<65'535>;

class LargeService {
 public:
  /// Returns when `together` calls are in it at the same time.
  void Null(lrpc::CallContext&) {
    for (++here; here < together;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::atomic<int> here{0};
  int together = 0;
  std::uint32_t Strings(lrpc::CallContext&, const Text& a, const Text& b, const Text& c, const Text& d, const Text& e) {
    return static_cast<std::uint32_t>(a.size() + b.size() + c.size() + d.size() + e.size());
  }
  lrpc::Result<Text, Large::Odd> Echo(lrpc::CallContext&, const Text& text) {
    if (text.size() % 2 != 0) return lrpc::raise(Large::Odd{.what = {std::byte{1}}});
    return text;
  }
};

/// A server with these options in this process, and its client.
struct LargeWorld {
  explicit LargeWorld(const lrpc::ServerOptions& options) : server(options) {}
  lrpc::Status serve() {
    auto ends = lrpc::shim::make_socket_pair();
    if (!ends) return ends.error();
    client_end = std::move(ends->second);
    return Large::serve_over(server, std::move(ends->first), service);
  }
  lrpc::Result<Large::Client> import(lrpc::Gate gate) {
    return Large::Client::import_over(std::move(client_end), {.gate = gate});
  }

  LargeService service;
  lrpc::Server server;
  lrpc::UniqueFd client_end;
};

std::uint32_t largest_need() {
  std::uint32_t need = 0;
  for (const auto& procedure : Large::kPdl.procedures) need = std::max(need, procedure.stack_need);
  return need;
}

class EStackSize : public testing::TestWithParam<lrpc::Gate> {};

TEST_P(EStackSize, is_enough_by_default_for_five_of_the_largest_strings) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's instrumentation needs more stack than the stubs declare";
#endif
  LargeWorld world({});
  ASSERT_TRUE(world.serve());
  auto client = world.import(GetParam());
  ASSERT_TRUE(client) << client.error().message();
  const std::string text(65'535, 'x');
  // So many calls that a poller, if there can be one, executes some of them.
  for (int i = 0; i < 200; ++i) ASSERT_EQ(client->Strings(text, text, text, text, text).value(), 5U * 65'535);
}

TEST_P(EStackSize, is_enough_for_what_the_refusal_says) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's instrumentation needs more stack than the stubs declare";
#endif
  LargeWorld world({.estack_size = 64 * 1024 + largest_need()});
  ASSERT_TRUE(world.serve());
  auto client = world.import(GetParam());
  ASSERT_TRUE(client) << client.error().message();
  const std::string text(65'535, 'x');
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(client->Strings(text, text, text, text, text).value(), 5U * 65'535);
    const auto odd = client->Echo(text);
    ASSERT_NE(odd.raised<Large::Odd>(), nullptr);
    ASSERT_EQ(client->Echo(std::string_view(text).substr(1))->size(), 65'534U);
  }
}

INSTANTIATE_TEST_SUITE_P(Gates, EStackSize, testing::Values(lrpc::Gate::handoff, lrpc::Gate::exchange), gate_name);

TEST(EStackSizeTooSmall, is_refused_at_export_with_the_size_that_would_do) {
  const std::size_t least = 64 * 1024 + largest_need();
  LargeWorld world({.nameserver = "/nonexistent", .estack_size = least - 1});
  const auto served = world.serve();
  const auto exported = Large::export_to(world.server, "large", world.service);
  for (const lrpc::Error& error : {served.error(), exported.error()}) {
    EXPECT_EQ(error.code, Errc::invalid_argument);
    EXPECT_NE(error.text.find("Large.Strings"), std::string::npos) << error.text;
    EXPECT_NE(error.text.find(std::to_string(largest_need())), std::string::npos) << error.text;
    EXPECT_NE(error.text.find("ServerOptions::estack_size"), std::string::npos) << error.text;
    EXPECT_NE(error.text.find(std::to_string(least)), std::string::npos) << error.text;
  }
}

TEST(EStackSizeTooSmall, the_size_in_the_refusal_covers_every_copy) {
  for (const auto& procedure : Large::kPdl.procedures) {
    const std::size_t copies = procedure.name == "Strings" ? 5 : procedure.name == "Echo" ? 4 : 0;
    EXPECT_GE(procedure.stack_need, copies * sizeof(Text)) << procedure.name;
    EXPECT_LE(procedure.stack_need, copies * sizeof(Text) * 5 / 4 + 4096) << procedure.name;
  }
}

TEST(KeptEStacks, stay_when_nobody_uses_them_and_the_others_end) {
  LargeService service;
  lrpc::Server server({.kept_estacks = 1, .estack_idle = std::chrono::milliseconds(100)});
  service.together = 3;  // each needs an E-stack
  {
    std::vector<Large::Client> clients;
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
      auto ends = lrpc::shim::make_socket_pair();
      ASSERT_TRUE(ends);
      ASSERT_TRUE(Large::serve_over(server, std::move(ends->first), service));
      auto client = Large::Client::import_over(std::move(ends->second), {.gate = lrpc::Gate::handoff});
      ASSERT_TRUE(client) << client.error().message();
      clients.push_back(*std::move(client));
    }
    for (auto& client : clients) callers.emplace_back([&] { EXPECT_TRUE(client.Null()); });
    for (auto& caller : callers) caller.join();
  }
  EXPECT_TRUE(eventually([&] { return server.statistics().estacks <= 1; }));
  // If the last one ended, too, it would have ended by now: all three became idle at about the same time.
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_EQ(server.statistics().estacks, 1U);
}

}  // namespace
}  // namespace testing_lrpc
