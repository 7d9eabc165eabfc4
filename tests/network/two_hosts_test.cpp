// Two hosts on one Ethernet: the choice of the Ethernet, and what messages cost.
#include "length.h"
#include "wire_host.h"

namespace testing_wires {
namespace {

class TwoHosts : public OnWires {
 protected:
  void SetUp() override {
    OnWires::SetUp();
    if (IsSkipped()) return;
    client_.emplace();
    server_.emplace();
    lrpc::netrpc::test::join(*client_, "wire", text(kClient), *server_, "wire", text(kServer));
  }
  std::optional<Namespace> client_;
  std::optional<Namespace> server_;
};

TEST_P(TwoHosts, OnOneEthernetTalkInEthernetFramesOnly) {
  WireHost server(*server_, kServer, stack());
  WireHost client(*client_, kClient, stack());
  client.open(kServer);
  call_until_over_ethernet(client, kServer, {&client, &server});
  const std::uint64_t before = over_ip({&client, &server});
  for (const std::size_t size : kSizesOfCalls) {
    const Answer answer = client.call(kServer, size, size);
    EXPECT_EQ(answer.outcome, Errc::ok) << size << " bytes";
    EXPECT_TRUE(answer.right) << size << " bytes";
  }
  EXPECT_EQ(over_ip({&client, &server}), before);
  for (WireHost* const host : {&client, &server}) {
    EXPECT_GE(host->counted("eth").sent, std::size(kSizesOfCalls));
    EXPECT_GE(host->counted("eth").received, std::size(kSizesOfCalls));
  }
}

TEST_P(TwoHosts, OnceWarmTakeNoMemoryForACallAndLeaveNone) {
  WireHost server(*server_, kServer, stack());
  WireHost client(*client_, kClient, stack());
  client.open(kServer);
  const auto calls = [&](int count) {
    int wrong = 0;
    for (int i = 0; i < count; ++i)
      if (!client.call(kServer, kSizesOfCalls[i % 3], static_cast<std::uint64_t>(i)).right) ++wrong;
    return wrong;
  };
  EXPECT_EQ(calls(300), 0);
  // On a busy machine retransmissions may need more buffers at once than ever before, which takes memory once. A leak
  // per call would take memory in every round.
  std::uint64_t taken = 1;
  for (int round = 0; round < 20 && taken != 0; ++round) {
    const std::uint64_t before = client.pool().allocations() + server.pool().allocations();
    EXPECT_EQ(calls(testing_lrpc::rounds(600)), 0);
    taken = client.pool().allocations() + server.pool().allocations() - before;
  }
  EXPECT_EQ(taken, 0U);
  client.end();
  server.end();
  EXPECT_EQ(client.pool().in_use(), 0U);
  EXPECT_EQ(server.pool().in_use(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Stacks, TwoHosts, ::testing::Values(&kLayered, &kSizes, &kMonolithic), name_of);

}  // namespace
}  // namespace testing_wires
