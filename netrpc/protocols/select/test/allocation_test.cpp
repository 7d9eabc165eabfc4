// In the steady state no call allocates.
#include "netrpc/protocols/select/test/select_hosts.h"
#include "netrpc/sim/test/counted_allocations.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

class Echo final : public Protocol {
 public:
  explicit Echo(Host& host) : Protocol(host, "echo") {}
  void call_demux(Session& lower, Message request) noexcept override { lower.reply(std::move(request)); }
};

class Again final : public Transaction {
 public:
  explicit Again(Session& session) : session_(session) {}
  void completed(Errc outcome, Message reply) noexcept override {
    ok += outcome == Errc::ok ? 1 : 0;
    if (--left > 0) session_.call(std::move(reply), *this, 1s);
  }
  int left = 0;
  int ok = 0;

 private:
  Session& session_;
};

TEST(AllocationTest, a_warm_call_through_select_and_channel_allocates_nothing) {
  SelectHosts net(2);
  Echo echo(net[1].host());
  ParticipantSet participants;
  participants.local.command = 7;
  ASSERT_TRUE(net.selects[1]->open_enable(echo, participants));
  Session& session = net.open(0, 1, 7);
  std::vector<std::unique_ptr<Again>> callers;
  for (int i = 0; i < 12; ++i) callers.push_back(std::make_unique<Again>(session));  // more than channels: some wait
  const auto run = [&](int calls) {
    for (auto& caller : callers) {
      caller->left = calls;
      const Shepherd inside(net[0].monitor());
      session.call(net.message(0, "hello"), *caller, 1s);
    }
    net.world.run_for(100ms);
  };
  run(50);
  const std::uint64_t before = allocations_so_far();
  const std::uint64_t buffers = net[0].pool().allocations() + net[1].pool().allocations();
  run(200);
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_EQ(net[0].pool().allocations() + net[1].pool().allocations(), buffers);
  for (auto& caller : callers) EXPECT_EQ(caller->ok, 250);
}

}  // namespace
}  // namespace lrpc::netrpc
