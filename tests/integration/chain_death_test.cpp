// Nested calls of which several domains die at once, or are revoked. Every caller that waits for a dead domain gets
// call_failed, and so do the callers before it. What returns to a dead domain, or over a revoked binding, is dropped
// (LRPC §5.3).
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "chain_service.h"
#include "eventually.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

constexpr std::uint32_t kLinks = 4;
constexpr std::uint32_t kLast = kLinks - 1;

/// One link's counts: of calls that it passed on, and of calls to Hold.
struct Seen {
  Chain::PassedResults passed;
  Chain::HoldsResults held;
};

/// client → 0 → 1 → 2 → 3, all over one gate. The last link holds a call that has passed through all of them.
class DyingChains : public testing::TestWithParam<Gate> {
 protected:
  void SetUp() override {
    for (std::uint32_t i = 0; i < kLinks; ++i) start(i);
  }
  void TearDown() override {
    if (!caller_.joinable()) return;
    links_.clear();  // so a call that still waits ends now
    caller_.join();
  }

  void start(std::uint32_t link) {
    links_.resize(kLinks);
    peers_.resize(kLinks);
    links_[link] = Process({LRPC_TEST_CHAIN_LINK, world_.nameserver(), std::to_string(link),
                            std::to_string(static_cast<int>(GetParam()))});
    peers_[link] = import(link);
    ASSERT_TRUE(peers_[link]);
    if (link == 0) client_ = import(0);
  }
  [[nodiscard]] std::optional<Chain::Client> import(std::uint32_t link) {
    auto client = Chain::Client::import("link-" + std::to_string(link),
                                        {.nameserver = world_.nameserver(), .timeout = kPatience, .gate = GetParam()});
    EXPECT_TRUE(client) << client.error().message();
    return client ? std::optional(*std::move(client)) : std::nullopt;
  }
  [[nodiscard]] Seen seen(std::uint32_t link) {
    const auto passed = peers_[link]->Passed();
    const auto held = peers_[link]->Holds();
    EXPECT_TRUE(passed && held) << "link " << link << " lives";
    return {passed ? *passed : Chain::PassedResults{}, held ? *held : Chain::HoldsResults{}};
  }

  /// Starts the call, and returns once the last link holds it. A restarted link is found by the one before it as soon
  /// as that one has noticed the end of the previous process.
  void begin_to_hold() {
    ASSERT_TRUE(eventually([&] {
      const auto sum = client_->Sum(kLast);
      return sum && sum->sum == 6;
    }));
    before_.clear();
    for (std::uint32_t i = 0; i < kLinks; ++i) before_.push_back(seen(i));
    caller_ = std::thread([this] { ended_ = client_->Hold(kLast).code(); });
    ASSERT_TRUE(eventually([&] { return seen(kLast).held.waiting == 1; }));
  }
  /// Kills all of them before any of them is reaped.
  void kill(const std::vector<std::uint32_t>& which) {
    for (const std::uint32_t link : which) links_[link].send(SIGKILL);
    for (const std::uint32_t link : which) links_[link].kill_and_wait();
  }
  /// How the caller's call ended.
  [[nodiscard]] Errc ended() {
    caller_.join();
    return ended_;
  }
  /// Whether the counts of the link have grown by these amounts since before_.
  [[nodiscard]] bool passed(std::uint32_t link, std::uint32_t waiting, std::uint32_t failed, std::uint32_t returned) {
    const auto& was = before_[link].passed;
    return seen(link).passed ==
           Chain::PassedResults{.waiting = waiting, .failed = was.failed + failed, .returned = was.returned + returned};
  }

  World world_;
  std::vector<Process> links_;
  std::vector<std::optional<Chain::Client>> peers_;  ///< Bindings to each link, to read its counts.
  std::optional<Chain::Client> client_;
  std::vector<Seen> before_;
  std::thread caller_;
  Errc ended_{};
};

TEST_P(DyingChains, fail_before_each_domain_that_dies_and_go_on_behind_it_whichever_die_at_once) {
  for (unsigned set = 1; set < 1U << kLinks; ++set) {
    SCOPED_TRACE("dead links, as bits: " + std::to_string(set));
    const auto dies = [set](std::uint32_t link) { return (set >> link & 1U) != 0; };
    std::vector<std::uint32_t> dead;
    for (std::uint32_t i = 0; i < kLinks; ++i) {
      if (dies(i)) dead.push_back(i);
    }
    ASSERT_NO_FATAL_FAILURE(begin_to_hold());
    kill(dead);
    EXPECT_EQ(ended(), Errc::call_failed);
    for (std::uint32_t i = 0; i < kLast; ++i) {
      if (dies(i)) continue;
      const bool fails = set >> (i + 1) != 0;
      EXPECT_TRUE(eventually([&] { return passed(i, fails ? 0 : 1, fails ? 1 : 0, 0); })) << "link " << i;
      EXPECT_EQ(peers_[i]->Sum(0).value().sum, i) << "it serves, whoever waits in it";
    }
    if (!dies(kLast)) {
      // The last link holds its call while the link before waits for it. Otherwise it has noticed that nobody waits.
      const auto held_before = before_[kLast].held.let_go;
      if (!dies(kLast - 1)) {
        EXPECT_EQ(seen(kLast).held.waiting, 1U);
        ASSERT_TRUE(peers_[kLast]->Release());
      }
      EXPECT_TRUE(
          eventually([&] { return seen(kLast).held == Chain::HoldsResults{.waiting = 0, .let_go = held_before + 1}; }));
    }
    // A released call returns link by link up to the last dead link. There nobody takes the return.
    for (std::uint32_t i = 0; i < kLast; ++i) {
      if (dies(i) || set >> (i + 1) != 0) continue;
      EXPECT_TRUE(eventually([&] { return passed(i, 0, 0, 1); })) << "link " << i;
    }
    for (const std::uint32_t link : dead) ASSERT_NO_FATAL_FAILURE(start(link));
  }
}

TEST_P(DyingChains, fail_in_the_client_when_the_first_dies_whether_or_not_the_others_run) {
  ASSERT_NO_FATAL_FAILURE(begin_to_hold());
  links_[1].send(SIGSTOP);
  kill({0});
  EXPECT_EQ(ended(), Errc::call_failed) << "whatever the others are doing";
  links_[1].send(SIGCONT);
  EXPECT_TRUE(eventually([&] { return passed(1, 1, 0, 0); }));
  ASSERT_TRUE(peers_[kLast]->Release());
  EXPECT_TRUE(eventually([&] { return passed(1, 0, 0, 1); })) << "what it has now goes nowhere";
  ASSERT_NO_FATAL_FAILURE(start(0));
  EXPECT_TRUE(eventually([&] { return client_->Sum(kLast).code() == Errc::ok; }));
}

constexpr std::array kChainGates{Gate::adaptive, Gate::exchange, Gate::handoff, Gate::sleep};

std::string name_of_gate(const testing::TestParamInfo<Gate>& tested) {
  switch (tested.param) {
    case Gate::exchange: return "exchange";
    case Gate::handoff: return "handoff";
    case Gate::sleep: return "sleep";
    default: return "adaptive";
  }
}

INSTANTIATE_TEST_SUITE_P(through, DyingChains, testing::ValuesIn(kChainGates), name_of_gate);

/// Links 0 and 1 are in this process, so that the test can end the binding between them while both live.
TEST(RevokedChains, fail_before_the_revoked_binding_and_drop_what_returns_over_it) {
  World world;
  const Process third({LRPC_TEST_CHAIN_LINK, world.nameserver(), "2"});
  ChainLink first(world.nameserver(), 0);
  ChainLink second(world.nameserver(), 1);
  std::atomic<std::uint64_t> between{0};
  std::atomic<int> unbound{0};
  lrpc::Server first_server({.nameserver = world.nameserver()});
  lrpc::Server second_server({.nameserver = world.nameserver()});
  lrpc::ExportOptions options;
  options.on_bound = [&](std::uint64_t id, const lrpc::shim::Credentials&) { between = id; };
  options.on_unbound = [&](std::uint64_t) { ++unbound; };
  ASSERT_TRUE(Chain::export_to(first_server, "link-0", first));
  ASSERT_TRUE(Chain::export_to(second_server, "link-1", second, options));
  auto client = Chain::Client::import("link-0", {.nameserver = world.nameserver()});
  auto last = Chain::Client::import("link-2", {.nameserver = world.nameserver()});
  ASSERT_TRUE(client && last && client->Sum(2));
  const std::uint64_t revoked = between;
  Errc ended{};
  std::thread caller([&] { ended = client->Hold(2).code(); });
  EXPECT_TRUE(eventually([&] { return last->Holds().value().waiting == 1; }));
  second_server.end_binding(revoked);
  caller.join();
  EXPECT_EQ(ended, Errc::call_failed);
  EXPECT_TRUE(eventually([&] { return unbound == 1; }));
  // The second domain still waits for the third, because that linkage is valid.
  auto asked = Chain::Client::import("link-1", {.nameserver = world.nameserver()});
  ASSERT_TRUE(asked) << asked.error().message();
  EXPECT_EQ(asked->Passed().value(), (Chain::PassedResults{.waiting = 1, .failed = 0, .returned = 0}));
  EXPECT_TRUE(eventually([&] { return client->Sum(2).code() == Errc::ok; })) << "over a new binding between the two";
  ASSERT_TRUE(last->Release());
  EXPECT_TRUE(eventually([&] {
    return asked->Passed().value() == Chain::PassedResults{.waiting = 0, .failed = 0, .returned = 1};
  })) << "and what it returns has nowhere to go";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client->Sum(2).value().sum, 3U);
}

}  // namespace
}  // namespace testing_lrpc
