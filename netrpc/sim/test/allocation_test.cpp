// In the steady state a call allocates nothing: neither in the protocols, nor in their messages, nor in the simulation.
#include <gtest/gtest.h>

#include <algorithm>

#include "netrpc/sim/storm_stacks.h"
#include "netrpc/sim/test/counted_allocations.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc {
namespace {

constexpr std::uint16_t kCommand = 7;

/// Answers with as many bytes as the request has.
class Answerer final : public Protocol {
 public:
  explicit Answerer(Host& host) : Protocol(host, "answerer") {}
  void call_demux(Session& lower, Message request) noexcept override {
    Message reply = Message::make(host().pool(), request.size());
    request.clear();
    lower.reply(std::move(reply));
  }
};

/// Makes the next call as soon as it has a reply.
class Caller final : public Transaction {
 public:
  Caller(Host& host, SessionRef session, std::size_t size) : host_(host), session_(std::move(session)), size_(size) {}
  void call() { session_->call(Message::make(host_.pool(), size_), *this, std::chrono::seconds(5)); }
  void completed(Errc outcome, Message reply) noexcept override {
    ++calls;
    if (outcome != Errc::ok || reply.size() != size_) ++wrong;
    reply.clear();
    if (!stopped) call();
  }
  std::uint64_t calls = 0;
  std::uint64_t wrong = 0;
  bool stopped = false;

 private:
  Host& host_;
  SessionRef session_;
  const std::size_t size_;
};

class AllocationTest : public testing::TestWithParam<NamedStack> {
 protected:
  /// Counts the allocations of 2,000 calls of `size` bytes, after `warm_up` calls.
  void measure(std::size_t size, const SimLink& link, std::uint64_t warm_up) {
    SimOptions options;
    options.link = link;
    SimHosts net(2, 1, options);
    const Result<ComposeStack> stack = stack_of(GetParam().text, simulated_kinds());
    ASSERT_TRUE(stack) << stack.error().message();
    Protocol* tops[2];
    for (std::size_t i = 0; i < 2; ++i) {
      net[i].on_boot([&](SimHost& host) {
        std::vector<Protocol*> all;
        tops[i] = &(*stack)(host, all);
      });
    }
    Answerer& server = net[1].add<Answerer>();
    ParticipantSet participants = SimHosts::anyone();
    participants.local.command = kCommand;
    ASSERT_TRUE(tops[1]->open_enable(server, participants));
    Answerer& high = net[0].add<Answerer>();
    participants = net.to(1);
    participants.remote.command = kCommand;
    Result<SessionRef> session = tops[0]->open(high, participants);
    ASSERT_TRUE(session) << session.error().message();
    Caller caller(net[0].host(), *session, size);
    {
      const Shepherd inside(net[0].monitor());
      caller.call();
    }
    ASSERT_TRUE(net.world.run_until([&] { return caller.calls >= warm_up; })) << caller.calls;
    const auto in_pools = [&] { return net[0].pool().allocations() + net[1].pool().allocations(); };
    const std::uint64_t before = allocations_so_far(), pools_before = in_pools();
    const bool done = net.world.run_until([&] { return caller.calls >= warm_up + 2000; });
    const std::uint64_t after = allocations_so_far(), pools_after = in_pools();
    EXPECT_TRUE(done);
    EXPECT_EQ(caller.wrong, 0U);
    EXPECT_EQ(after - before, 0U) << "in 2,000 calls of " << size << " bytes";
    EXPECT_EQ(pools_after - pools_before, 0U) << "in 2,000 calls of " << size << " bytes";
    caller.stopped = true;
    (void)net.world.run_until([&] { return caller.calls >= warm_up + 2001; });
    const Shepherd inside(net[0].monitor());
    (*session)->cancel(caller);
  }
};

TEST_P(AllocationTest, a_null_call_allocates_nothing) { measure(0, {}, 500); }
TEST_P(AllocationTest, a_call_of_a_frame_allocates_nothing) { measure(1400, {}, 500); }
TEST_P(AllocationTest, a_call_of_sixteen_thousand_bytes_allocates_nothing) { measure(15'000, {}, 500); }
TEST_P(AllocationTest, a_call_over_a_wire_that_loses_allocates_nothing) {
  SimLink link;
  link.loss = 0.05;
  link.duplicate = 0.05;
  link.reorder = 0.05;
  measure(64, link, 20'000);
}

INSTANTIATE_TEST_SUITE_P(Stacks, AllocationTest, testing::ValuesIn(storm_stacks()), [](const auto& stack) {
  std::string name(stack.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace lrpc::netrpc
