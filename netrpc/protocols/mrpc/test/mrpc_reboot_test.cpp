// Crashes and reboots of either side, dead peers, and that no state is left behind.
#include "netrpc/protocols/mrpc/test/mrpc_fixture.h"

namespace lrpc::netrpc::mrpc {
namespace {

using MrpcRebootTest = MrpcTest;

TEST_F(MrpcRebootTest, a_rebooted_server_never_executes_a_request_meant_for_its_earlier_life) {
  warm_up();
  tap[0]->judge = [](const Header& header) { return is_request(header) ? Tap::Fate::keep : Tap::Fate::send; };
  TestCall one;
  start(one, "earlier");
  crash(1);
  net[1].boot();
  tap[0]->judge = nullptr;
  {
    const Shepherd inside(net[0].monitor());
    tap[0]->release();
  }
  net.world.run_for(1ms);
  EXPECT_EQ(one.outcome, Errc::call_failed);
  ASSERT_EQ(tap[1]->sent.size(), 1U);
  EXPECT_EQ(tap[1]->sent[0].type, Type::rebooted);
  EXPECT_EQ(server->executed, 0);
  std::string reply;
  EXPECT_EQ(call("later", reply), Errc::ok);  // the client knows the new life
  EXPECT_EQ(server->executed, 1);
}

TEST_F(MrpcRebootTest, a_server_that_reboots_while_it_executes_fails_all_calls_under_way_at_the_next_probe) {
  warm_up();
  server->slow = true;
  TestCall calls[12];
  for (auto& one : calls) start(one, "x");  // four of them wait for a channel
  net.world.run_for(10ms);
  crash(1);
  net[1].boot();
  net.world.run_for(1s);
  int failed = 0;
  int answered = 0;
  for (auto& one : calls) {
    EXPECT_EQ(one.completions, 1);
    failed += one.outcome == Errc::call_failed ? 1 : 0;
    answered += one.outcome == Errc::ok ? 1 : 0;
  }
  EXPECT_EQ(failed, 8);
  EXPECT_EQ(answered, 4);  // the four that had not been sent: the new life executes them
  EXPECT_EQ(server->executed, 4);
}

TEST_F(MrpcRebootTest, somebody_else_who_hears_of_the_reboot_fails_the_calls_at_once) {
  warm_up();
  server->slow = true;
  TestCall one;
  start(one, "x");
  net.world.run_for(1ms);
  {
    const Shepherd inside(net[0].monitor());
    net[0].host().peers().heard(net.address(1), 12345);
  }
  EXPECT_EQ(one.outcome, Errc::call_failed);
}

TEST_F(MrpcRebootTest, a_client_that_reboots_begins_anew_and_packets_of_its_earlier_life_are_dropped) {
  warm_up();
  const Header earlier = request(1000);
  server->slow = true;
  TestCall one;
  start(one, "earlier");
  net.world.run_for(1ms);
  crash(0);
  net[0].boot();
  server->slow = false;
  std::string reply;
  EXPECT_EQ(call("later", reply), Errc::ok);
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();  // to the dead client: goes nowhere
  }
  inject(0, earlier, "");  // a newer sequence number, but of an ended life
  net.world.run_for(1s);
  EXPECT_EQ(server->executed, 2);
  EXPECT_EQ(call("still", reply), Errc::ok);
}

TEST_F(MrpcRebootTest, more_lives_of_a_client_than_can_be_told_from_delayed_packets_are_refused_for_a_packet_life) {
  warm_up();
  for (BootId life = 1; life <= 20; ++life) {
    Header header = request(1);
    header.boot_id = life;
    inject(0, header);
    net.world.run_for(1ms);
  }
  EXPECT_EQ(server->executed, static_cast<int>(Client::kDeadLives));
  EXPECT_EQ(statistics(1).refused, 20U - Client::kDeadLives);
  net.world.run_for(90s);
  Header header = request(1);
  header.boot_id = 99;
  inject(0, header);
  net.world.run_for(1ms);
  EXPECT_EQ(server->executed, static_cast<int>(Client::kDeadLives) + 1);
}

TEST_F(MrpcRebootTest, a_peer_that_is_gone_fails_the_call_after_the_give_up_time) {
  warm_up();
  crash(1);
  std::string reply;
  const Time before = net.world.now();
  EXPECT_EQ(call("x", reply), Errc::call_failed);
  EXPECT_EQ(net.world.now() - before, 5s);
  // The next call first asks for the peer's life, so it can report that nothing was executed.
  EXPECT_EQ(call("y", reply), Errc::host_unreachable);
  net[1].boot();
  EXPECT_EQ(call("z", reply), Errc::ok);
  EXPECT_EQ(server->executions["z"], 1);
}

TEST_F(MrpcRebootTest, a_host_that_never_answers_is_unreachable_after_the_give_up_time) {
  crash(1);
  const Time before = net.world.now();
  std::string reply;
  EXPECT_EQ(call("x", reply), Errc::host_unreachable);
  EXPECT_EQ(net.world.now() - before, 5s);
  EXPECT_EQ(tap[0]->count(Type::query), 15U) << "after 10 ms, 20 more, 40 more and so on, up to 500 ms";
}

TEST_F(MrpcRebootTest, after_a_packet_life_without_calls_nothing_is_left_at_either_end) {
  warm_up();
  std::string reply;
  EXPECT_EQ(call(pattern(16384), reply), Errc::ok);
  {
    const Shepherd inside(net[0].monitor());
    session = {};
    tap[0]->record = false;
  }
  net.world.run_for(3min);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(statistics(i).sessions, 0U);
    EXPECT_EQ(statistics(i).state, 0U);
    EXPECT_EQ(net[i].pool().in_use(), 0U);
    EXPECT_EQ(net[i].host().peers().size(), 0U);
    const Shepherd inside(net[i].monitor());
    tap[i]->drop_idle();
  }
  net.world.run_for(3min);
  const std::uint64_t events = net.world.counters().events;
  net.world.run_for(1h);
  EXPECT_EQ(net.world.counters().events, events);
}

TEST_F(MrpcRebootTest, drop_idle_lets_go_of_a_peer_without_its_channels_ever_going_back_to_used_numbers) {
  warm_up();
  control::Request drop = control::DropIdle{};
  {
    const Shepherd inside(net[0].monitor());
    session = {};
    EXPECT_EQ(mrpc[0]->control(drop), Errc::ok);
    EXPECT_EQ(statistics(0).state, 0U);
    session = *mrpc[0]->open(*user, to_server());
  }
  {
    const Shepherd inside(net[1].monitor());
    EXPECT_EQ(mrpc[1]->control(drop), Errc::ok);
    EXPECT_EQ(statistics(1).state, 1U);  // at-most-once execution depends on it
  }
  std::string reply;
  EXPECT_EQ(call("x", reply), Errc::ok);
  EXPECT_EQ(statistics(1).duplicates, 0U);
}

TEST_F(MrpcRebootTest, sessions_to_the_same_command_are_one_and_a_call_outlives_its_session) {
  warm_up();
  TestCall one;
  {
    const Shepherd inside(net[0].monitor());
    EXPECT_EQ(*mrpc[0]->open(*user, to_server()), session);
    EXPECT_EQ(mrpc[0]->open(*user, {}).code(), Errc::invalid_argument);
  }
  start(one, "x");
  {
    const Shepherd inside(net[0].monitor());
    session = {};
  }
  net.world.run_for(1ms);
  EXPECT_EQ(one.outcome, Errc::ok);
}

TEST_F(MrpcRebootTest, who_is_destroyed_before_its_host_hears_of_no_more_reboots) {
  const Shepherd inside(net[0].monitor());
  auto other = std::make_unique<Monolithic>(net[0].host(), "other", *tap[0], Settings());
  net[0].host().peers().heard(net.address(1), 12345);
  other = nullptr;
  net[0].host().peers().heard(net.address(1), 54321);  // only the sanitizer checks this
  EXPECT_EQ(net[0].host().peers().boot_id(net.address(1)), 54321U);
}

TEST_F(MrpcRebootTest, the_last_copy_of_a_request_that_is_under_way_for_a_whole_packet_life_is_not_executed_again) {
  warm_up();
  net.world.run_for(14900ms);  // shortly before a sweep: state is not kept longer than needed
  tap[1]->judge = [](const Header&) { return Tap::Fate::lose; };
  int copies = 0;
  const Time began = net.world.now();
  tap[0]->judge = [&](const Header& header) {
    if (!is_request(header)) return Tap::Fate::send;
    if (++copies == 1) return Tap::Fate::send;
    return net.world.now() - began > 4s ? Tap::Fate::keep : Tap::Fate::lose;
  };
  std::string reply;
  EXPECT_EQ(call("once", reply), Errc::call_failed);
  net.world.run_for(began + 63900ms - net.world.now());
  {
    const Shepherd inside(net[0].monitor());
    tap[0]->release();
  }
  net.world.run_for(1ms);
  EXPECT_GT(copies, 2);
  EXPECT_EQ(server->executions["once"], 1);
}

TEST_F(MrpcRebootTest, a_client_that_old_acknowledgements_keep_waiting_does_not_make_its_call_run_again) {
  warm_up();
  net.world.run_for(14900ms);
  server->slow = true;
  TestCall one;
  start(one, "once");
  net.world.run_for(100ms);
  ASSERT_EQ(server->executed, 1);
  Header ack = tap[1]->sent.back();
  ASSERT_EQ(ack.type, Type::request_ack);
  tap[0]->judge = [](const Header&) { return Tap::Fate::lose; };
  for (int i = 0; i < 14; ++i) {
    net.world.run_for(4s);
    inject(1, ack);
  }
  net.world.run_for(4200ms);
  EXPECT_FALSE(one.done());
  tap[0]->judge = nullptr;
  net.world.run_for(2s);
  EXPECT_EQ(server->executed, 1);
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  net.world.run_for(1s);
  EXPECT_EQ(one.outcome, Errc::ok);
}

TEST_F(MrpcRebootTest, a_saved_reply_goes_after_a_packet_life_and_the_number_of_its_call_later) {
  warm_up();
  std::string reply;
  EXPECT_EQ(call("x", reply), Errc::ok);
  Header again = tap[0]->sent.back();
  again.bits = kPleaseAck;
  EXPECT_GT(net[1].pool().in_use(), 0U);
  net.world.run_for(80s);
  EXPECT_EQ(net[1].pool().in_use(), 0U);
  EXPECT_EQ(statistics(1).state, 1U);
  inject(0, again, "x");
  net.world.run_for(1ms);
  EXPECT_EQ(tap[1]->sent.back().bits, kError);
  EXPECT_EQ(server->executed, 1);
}

class MrpcWrapTest : public MrpcTest {
 protected:
  MrpcWrapTest()
      : MrpcTest([] {
          Settings settings;
          settings.sequence = 0xfffffff0;
          return settings;
        }()) {}
};

TEST_F(MrpcWrapTest, sequence_numbers_wrap_and_old_ones_stay_old) {
  warm_up();
  std::string reply;
  tap[0]->judge = [seen = 0](const Header& header) mutable {
    return is_request(header) && ++seen == 3 ? Tap::Fate::keep : Tap::Fate::send;
  };
  for (int i = 0; i < 40; ++i) ASSERT_EQ(call(std::to_string(i), reply), Errc::ok);
  {
    const Shepherd inside(net[0].monitor());
    tap[0]->release();
  }
  net.world.run_for(1s);
  EXPECT_EQ(server->executed, 40);
  EXPECT_EQ(statistics(1).duplicates, 1U);
}

}  // namespace
}  // namespace lrpc::netrpc::mrpc
