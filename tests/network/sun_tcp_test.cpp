// Sun RPC over TCP on wires that lose, double and reorder packets: every call is answered, with the bytes that were
// sent. Sun RPC does not promise how often a call is executed.
#include "callers.h"

namespace testing_wires {
namespace {

constexpr std::uint16_t kPort = 24211;
const Stack kSunTcp{"SunRpc", "wire = TCP(port = 24211);",
                    "pairs = REQUEST_REPLY(give_up = 240s) over spoiled; call = SUN_CALL over pairs;"
                    "auth = AUTH_NONE over call; top = SUN_SELECT(program = 9) over auth;"};

class TcpOnBadWires : public OnWires {
 protected:
  void SetUp() override {
    OnWires::SetUp();
    if (IsSkipped()) return;
    client_.emplace();
    server_.emplace();
    lrpc::netrpc::test::join(*client_, "wire", text(kClient), *server_, "wire", text(kServer));
  }
  void expect_each_call_answered() {
    constexpr std::uint64_t kThreads = 4;
    constexpr std::uint64_t kRounds = 10;
    WireHost server(*server_, kServer, stack());
    WireHost client(*client_, kClient, stack());
    client.open(kServer, kPort);
    std::vector<std::thread> callers;
    for (std::uint64_t caller = 0; caller < kThreads; ++caller) {
      callers.emplace_back([&client, caller] {
        for (std::uint64_t i = 0; i < kRounds; ++i) {
          for (const std::size_t size : kSizesOfCalls) {
            const Answer answer = client.call(kServer, size, caller * kRounds + i);
            EXPECT_EQ(answer.outcome, Errc::ok) << size;
            EXPECT_TRUE(answer.right) << size;
          }
        }
      });
    }
    for (std::thread& one : callers) one.join();
  }
  std::optional<Namespace> client_;
  std::optional<Namespace> server_;
};

TEST_P(TcpOnBadWires, ThatLoseDoubleAndReorderAnswersEveryCall) {
  if (const auto why = lrpc::netrpc::test::why_no_netem()) GTEST_SKIP() << *why;
  for (const Namespace* const end : {&*client_, &*server_})
    end->tc("qdisc add dev wire root netem delay 1ms loss 10% duplicate 20% reorder 25% 50%");
  expect_each_call_answered();
}

TEST_P(TcpOnBadWires, WhoseFirewallDropsATenthAnswersEveryCall) {
  if (const auto why = lrpc::netrpc::test::why_no_nftables()) GTEST_SKIP() << *why;
  for (const Namespace* const end : {&*client_, &*server_}) {
    end->nft("add table netdev lossy");
    end->nft("add chain netdev lossy in { type filter hook ingress device wire priority 0 ; }");
    end->nft("add rule netdev lossy in numgen random mod 10 0 drop");
  }
  expect_each_call_answered();
}

INSTANTIATE_TEST_SUITE_P(Stacks, TcpOnBadWires, ::testing::Values(&kSunTcp), name_of);

}  // namespace
}  // namespace testing_wires
