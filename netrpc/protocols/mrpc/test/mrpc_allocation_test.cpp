// After the first calls a call allocates nothing: no memory from the system, and no new buffer in the pools.
#include "netrpc/protocols/mrpc/test/mrpc_fixture.h"
#include "netrpc/sim/test/counted_allocations.h"

namespace lrpc::netrpc::mrpc {
namespace {

/// Answers with the request itself.
class Echo final : public Protocol {
 public:
  explicit Echo(Host& host) : Protocol(host, "echo") {}
  void call_demux(Session& lower, Message request) noexcept override { lower.reply(std::move(request)); }
};
class Outcome final : public Transaction {
 public:
  void completed(Errc errc, Message reply) noexcept override {
    outcome = errc;
    size = reply.size();
    done = true;
  }
  bool done = false;
  Errc outcome = Errc::call_failed;
  std::size_t size = 0;
};

class MrpcAllocationTest : public testing::Test {
 protected:
  MrpcAllocationTest() {
    for (std::size_t i = 0; i < 2; ++i) mrpc[i] = &net[i].add<Monolithic>("mrpc", net[i].ethernet(), Settings());
    auto& echo = net[1].add<Echo>();
    ParticipantSet participants;
    participants.local.command = 1;
    {
      const Shepherd inside(net[1].monitor());
      EXPECT_TRUE(mrpc[1]->open_enable(echo, participants));
    }
    participants = net.to(1);
    participants.remote.command = 1;
    const Shepherd inside(net[0].monitor());
    session = *mrpc[0]->open(net[0].add<SinkProtocol>(), participants);
  }
  ~MrpcAllocationTest() override {
    const Shepherd inside(net[0].monitor());
    session = {};
  }
  void call(std::size_t size) {
    Outcome one;
    {
      const Shepherd inside(net[0].monitor());
      session->call(Message::make(net[0].pool(), size), one, 1s);
    }
    while (!one.done && net.world.step(net.world.now() + 1s)) {
    }
    ASSERT_EQ(one.outcome, Errc::ok);
    ASSERT_EQ(one.size, size);
  }
  void expect_no_allocations_of(std::size_t size) {
    for (int i = 0; i < 100; ++i) call(size);
    const std::uint64_t before = allocations_so_far();
    const std::uint64_t pools = net[0].pool().allocations() + net[1].pool().allocations();
    for (int i = 0; i < 1000; ++i) call(size);
    EXPECT_EQ(allocations_so_far(), before);
    EXPECT_EQ(net[0].pool().allocations() + net[1].pool().allocations(), pools);
  }

  SimHosts net{2};
  Monolithic* mrpc[2] = {};
  SessionRef session;
};

TEST_F(MrpcAllocationTest, a_warm_null_call_allocates_nothing) { expect_no_allocations_of(0); }
TEST_F(MrpcAllocationTest, a_warm_call_of_one_packet_allocates_nothing) { expect_no_allocations_of(1400); }
TEST_F(MrpcAllocationTest, a_warm_call_of_16_kib_each_way_allocates_nothing) { expect_no_allocations_of(16384); }
TEST_F(MrpcAllocationTest, warm_calls_on_a_lossy_wire_take_no_new_buffers) {
  net.world.set_links({.loss = 0.05, .duplicate = 0.05});
  for (int i = 0; i < 3000; ++i) call(6000);
  // The simulated wire may still allocate for a new maximum of packets in flight. The pools of messages may not.
  const std::uint64_t pools = net[0].pool().allocations() + net[1].pool().allocations();
  for (int i = 0; i < 1000; ++i) call(6000);
  EXPECT_EQ(net[0].pool().allocations() + net[1].pool().allocations(), pools);
}

}  // namespace
}  // namespace lrpc::netrpc::mrpc
