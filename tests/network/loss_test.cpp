// Wires that lose, double and reorder packets: every call is answered, none is executed twice.
#include "callers.h"

namespace testing_wires {
namespace {

constexpr std::size_t kLossyCalls = 2000;
constexpr int kLossyCallers = 8;

class BadWires : public OnWires {
 protected:
  void SetUp() override {
    OnWires::SetUp();
    if (IsSkipped()) return;
    client_.emplace();
    server_.emplace();
    lrpc::netrpc::test::join(*client_, "wire", text(kClient), *server_, "wire", text(kServer));
  }
  void expect_each_call_executed_once(const char* fault) {
    Ledger ledger(kLossyCalls);
    WireHost server(*server_, kServer, stack(), {.fault = fault, .ledger = &ledger});
    WireHost client(*client_, kClient, stack(), {.fault = fault});
    client.open(kServer);
    std::atomic<std::size_t> made = 0;
    const std::vector<Answer> answers =
        call_from_threads(client, kServer, kLossyCallers, kLossyCalls, made, [](const Answer&) { return true; });
    ASSERT_EQ(answers.size(), kLossyCalls);
    for (std::size_t i = 0; i < kLossyCalls; ++i) {
      EXPECT_EQ(answers[i].outcome, Errc::ok) << "call " << i;
      EXPECT_TRUE(answers[i].right) << "call " << i;
      EXPECT_EQ(ledger.executed(i), 1) << "call " << i;
    }
    if (*fault == '\0') return;
    // Otherwise FAULT did nothing, and the test proves nothing.
    EXPECT_GT(client.counted("spoiled").refused, 0U);
    EXPECT_GT(server.counted("spoiled").refused, 0U);
  }
  std::optional<Namespace> client_;
  std::optional<Namespace> server_;
};

TEST_P(BadWires, ThatLoseATenthBothWaysDoNotHinderAnyCall) { expect_each_call_executed_once("loss = 0.1, on = push"); }

TEST_P(BadWires, ThatLoseATenthBothWaysDoNotHinderMessagesOfManyPackets) {
  constexpr const char* kFault = "loss = 0.1, on = push";
  constexpr std::uint64_t kLargeCalls = 100;
  Ledger ledger(kLargeCalls);
  WireHost server(*server_, kServer, stack(), {.fault = kFault, .ledger = &ledger});
  WireHost client(*client_, kClient, stack(), {.fault = kFault});
  client.open(kServer);
  for (std::uint64_t i = 0; i < kLargeCalls; ++i) {
    const Answer answer = client.call(kServer, 16'000, i);
    EXPECT_EQ(answer.outcome, Errc::ok) << "call " << i;
    EXPECT_TRUE(answer.right) << "call " << i;
    EXPECT_EQ(ledger.executed(i), 1) << "call " << i;
  }
}

TEST_P(BadWires, ThatLoseDoubleAndReorderDoNotHinderAnyCall) {
  expect_each_call_executed_once("loss = 0.05, duplicate = 0.1, reorder = 0.1, hold = 2ms, on = push");
}

TEST_P(BadWires, OfTheKernelThatLoseATenthDoNotHinderAnyCall) {
  if (const auto why = lrpc::netrpc::test::why_no_netem()) GTEST_SKIP() << *why;
  for (const Namespace* const end : {&*client_, &*server_}) end->tc("qdisc add dev wire root netem loss 10%");
  expect_each_call_executed_once("");
}

TEST_P(BadWires, WhoseFirewallDropsATenthDoNotHinderAnyCall) {
  if (const auto why = lrpc::netrpc::test::why_no_nftables()) GTEST_SKIP() << *why;
  for (const Namespace* const end : {&*client_, &*server_}) {
    end->nft("add table netdev lossy");
    end->nft("add chain netdev lossy in { type filter hook ingress device wire priority 0 ; }");
    end->nft("add rule netdev lossy in numgen random mod 10 0 drop");
  }
  expect_each_call_executed_once("");
}

TEST_P(BadWires, OfTheKernelThatReorderDoNotHinderAnyCall) {
  if (const auto why = lrpc::netrpc::test::why_no_netem()) GTEST_SKIP() << *why;
  for (const Namespace* const end : {&*client_, &*server_})
    end->tc("qdisc add dev wire root netem delay 1ms reorder 25% 50%");
  expect_each_call_executed_once("");
}

INSTANTIATE_TEST_SUITE_P(Stacks, BadWires, ::testing::Values(&kLayered, &kSizes, &kMonolithic), name_of);

}  // namespace
}  // namespace testing_wires
