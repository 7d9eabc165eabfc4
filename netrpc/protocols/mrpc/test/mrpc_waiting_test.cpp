// Calls that wait for a channel, for the peer's life or for a fragment: each of them ends, whatever happens to the peer
// meanwhile.
#include "netrpc/protocols/mrpc/test/mrpc_fixture.h"

namespace lrpc::netrpc::mrpc {
namespace {

/// A call that runs a function when it ends.
class ActingCall final : public Transaction {
 public:
  explicit ActingCall(std::function<void()> act) : act_(std::move(act)) {}
  void completed(Errc errc, Message /*reply*/) noexcept override {
    ++completions;
    outcome = errc;
    act_();
  }
  int completions = 0;
  Errc outcome = Errc::ok;

 private:
  std::function<void()> act_;
};

class MrpcWaitingTest : public MrpcTest {
 protected:
  void start_waiting_for(Transaction& call, std::string_view request, Duration timeout = kNoLimit) {
    const Shepherd inside(net[0].monitor());
    session->call(net.message(0, request), call, timeout);
  }
  /// Starts as many calls as there are channels; the server keeps them.
  void make_busy() {
    server->slow = true;
    for (auto& one : busy) start(one, "busy");
    net.world.run_for(1ms);
    ASSERT_EQ(server->executed, 8);
  }
  /// What a user may do in completed(): release the last session and drop all idle state.
  void drop_session() {
    session = {};
    control::Request drop = control::DropIdle{};
    EXPECT_EQ(mrpc[0]->control(drop), Errc::ok);
    state_seen = statistics(0).state;
  }

  TestCall busy[8];
  std::size_t state_seen = 0;
};

TEST_F(MrpcWaitingTest, a_call_without_a_timeout_that_waits_for_a_channel_ends_when_the_server_dies) {
  warm_up();
  make_busy();
  TestCall waits;
  start(waits, "waits");
  crash(1);
  net.world.run_for(1min);
  for (const auto& one : busy) EXPECT_EQ(one.outcome, Errc::call_failed);
  ASSERT_EQ(waits.completions, 1);
  EXPECT_EQ(waits.outcome, Errc::host_unreachable);  // it was never sent
}

TEST_F(MrpcWaitingTest, a_call_for_which_the_queue_has_no_room_is_refused_and_was_never_sent) {
  warm_up();
  make_busy();
  std::vector<std::unique_ptr<TestCall>> waiting;
  for (std::size_t i = 0; i < Settings{}.queue; ++i) {
    waiting.push_back(std::make_unique<TestCall>());
    start(*waiting.back(), "waits");
  }
  TestCall refused;
  start(refused, "refused");
  EXPECT_EQ(refused.completions, 1);
  EXPECT_EQ(refused.outcome, Errc::limit_reached);
  EXPECT_FALSE(waiting.back()->done());
  // A cancelled call makes room for one more.
  cancel(*waiting.front());
  TestCall last;
  start(last, "last");
  TestCall too_late;
  start(too_late, "refused");
  EXPECT_EQ(too_late.outcome, Errc::limit_reached);
  server->slow = false;
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  ASSERT_TRUE(net.world.run_until([&] { return last.done(); }, 1min));
  EXPECT_EQ(last.outcome, Errc::ok);
  for (std::size_t i = 1; i < waiting.size(); ++i) EXPECT_EQ(waiting[i]->outcome, Errc::ok);
  EXPECT_EQ(server->executed, 8 + static_cast<int>(Settings{}.queue));
}

TEST_F(MrpcWaitingTest, cancelling_everything_during_a_query_leaves_the_next_call_a_query_of_its_own) {
  warm_up();
  crash(1);
  TestCall first;
  TestCall second;
  TestCall third;
  TestCall fourth;
  start(first, "first");
  net.world.run_for(3s);
  start(second, "second");
  net.world.run_for(2100ms);
  EXPECT_EQ(first.outcome, Errc::call_failed);  // from here on the peer's life is unknown
  start(third, "third");
  cancel(third);
  cancel(second);
  start(fourth, "fourth");
  net.world.run_for(1min);
  EXPECT_EQ(fourth.completions, 1);
  EXPECT_EQ(fourth.outcome, Errc::host_unreachable);
  EXPECT_EQ(second.completions + third.completions, 0);
}

TEST_F(MrpcWaitingTest, a_life_that_somebody_else_has_heard_of_ends_the_query_and_who_waits_for_a_channel_waits_on) {
  server->slow = true;
  tap[0]->judge = [](const Header& header) { return header.type == Type::query ? Tap::Fate::lose : Tap::Fate::send; };
  TestCall calls[10];
  for (auto& one : calls) start(one, "x");
  net.world.run_for(1ms);
  {
    const Shepherd inside(net[0].monitor());
    net[0].host().peers().heard(net.address(1), net[1].host().boot_id() ^ 1);
    net[0].host().peers().heard(net.address(1), net[1].host().boot_id());
  }
  const std::size_t queries = tap[0]->count(Type::query);
  net.world.run_for(20s);
  EXPECT_EQ(tap[0]->count(Type::query), queries);
  EXPECT_EQ(server->executed, 8);
  server->slow = false;
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  net.world.run_for(1s);
  for (const auto& one : calls) EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(server->executed, 10);
}

TEST_F(MrpcWaitingTest, a_long_queue_that_the_layer_below_refuses_at_once_is_worked_off_without_nesting) {
  warm_up();
  make_busy();
  std::uintptr_t lowest = ~std::uintptr_t{0};
  std::uintptr_t highest = 0;
  std::vector<std::unique_ptr<ActingCall>> waiting;
  for (int i = 0; i < 200; ++i) {
    waiting.push_back(std::make_unique<ActingCall>([&] {
      const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
      lowest = std::min(lowest, here);
      highest = std::max(highest, here);
    }));
    start_waiting_for(*waiting.back(), "waits");
  }
  tap[0]->judge = [](const Header& header) { return is_request(header) ? Tap::Fate::refuse : Tap::Fate::send; };
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  net.world.run_for(1ms);
  for (const auto& one : waiting) {
    EXPECT_EQ(one->completions, 1);
    EXPECT_EQ(one->outcome, Errc::host_unreachable);
  }
  EXPECT_EQ(highest, lowest);  // all at the same stack depth
}

TEST_F(MrpcWaitingTest, a_call_of_several_packets_that_the_layer_below_refuses_ends_at_once_with_its_reason) {
  warm_up();
  tap[0]->judge = [](const Header& header) { return is_request(header) ? Tap::Fate::refuse : Tap::Fate::send; };
  for (const Errc refusal : {Errc::host_unreachable, Errc::message_too_long}) {
    tap[0]->refusal = refusal;
    tap[0]->sent.clear();
    TestCall large;
    start(large, pattern(10000));
    EXPECT_EQ(large.completions, 1);
    EXPECT_EQ(large.outcome, refusal);
    EXPECT_EQ(tap[0]->sent.size(), 1U);
  }
  tap[0]->judge = nullptr;
  std::string reply;
  EXPECT_EQ(call(pattern(10000), reply), Errc::ok);
  EXPECT_EQ(server->executed, 1);
}

TEST_F(MrpcWaitingTest, a_host_that_this_one_had_no_memory_to_ask_is_not_said_to_be_unreachable) {
  tap[0]->judge = [](const Header&) { return Tap::Fate::refuse; };
  tap[0]->refusal = Errc::limit_reached;
  TestCall one;
  start(one, "x");
  net.world.run_for(1min);
  EXPECT_EQ(one.completions, 1);
  EXPECT_EQ(one.outcome, Errc::limit_reached);
  tap[0]->judge = nullptr;
  std::string reply;
  EXPECT_EQ(call("x", reply), Errc::ok);
}

TEST_F(MrpcWaitingTest, the_last_fragment_of_a_slow_servers_reply_is_asked_for_long_before_the_next_probe) {
  warm_up();
  server->slow = true;
  TestCall one;
  start(one, "slow");
  net.world.run_for(3s);  // the client probes twice a second by now
  tap[0]->sent.clear();
  ASSERT_TRUE(net.world.run_until([&] { return !tap[0]->sent.empty(); }, 1s));
  net.world.run_for(1ms);  // the last probe has been answered
  lose(1, 1, [](const Header& header) { return is_reply(header) && header.mask == 8; });
  {
    const Shepherd inside(net[1].monitor());
    server->pending.front()->reply(net.message(1, pattern(5000)));
  }
  net.world.run_for(20ms);
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.reply, pattern(5000));
}

TEST_F(MrpcWaitingTest, who_lets_the_last_session_go_when_its_timeout_passes_does_not_pull_the_peer_away) {
  crash(1);
  ActingCall last([this] { drop_session(); });
  start_waiting_for(last, "x", 100ms);
  net.world.run_for(1s);
  EXPECT_EQ(last.outcome, Errc::call_aborted);
  EXPECT_EQ(state_seen, 1U);  // the peer is in use until the completing loop ends
  const Shepherd inside(net[0].monitor());
  drop_session();
  EXPECT_EQ(state_seen, 0U);
}

TEST_F(MrpcWaitingTest, who_lets_the_last_session_go_when_the_peer_does_not_answer_does_not_pull_it_away) {
  crash(1);
  ActingCall last([this] { drop_session(); });
  start_waiting_for(last, "x");
  net.world.run_for(1min);
  EXPECT_EQ(last.outcome, Errc::host_unreachable);
  EXPECT_EQ(state_seen, 1U);
  const Shepherd inside(net[0].monitor());
  drop_session();
  EXPECT_EQ(state_seen, 0U);
}

}  // namespace
}  // namespace lrpc::netrpc::mrpc
