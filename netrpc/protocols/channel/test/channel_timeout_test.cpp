// How long CHANNEL waits before it retransmits: it measures, waits longer for more fragments, and tolerates single
// losses.
#include "netrpc/protocols/channel/round_trip.h"
#include "netrpc/protocols/channel/test/channel_pair.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

TEST(ChannelTimeoutTest, a_message_of_many_fragments_is_given_time_that_grows_with_them) {
  ChannelPair pair;
  // Makes a call of `size` bytes whose round trip takes `time`.
  const auto timed = [&pair](std::size_t size, Duration time) {
    TestCall call;
    pair.call(call, std::string(size, 'x'));
    pair.wire.pass(time);
    pair.wire.deliver_all();
    EXPECT_EQ(call.outcome, Errc::ok);
  };
  pair.server->at_once = true;
  timed(10, 200us);
  for (int i = 0; i < 20; ++i) timed(10, 200us);
  TestCall large;
  pair.call(large, std::string(16000, 'x'));
  pair.wire.pass(4900us);
  EXPECT_EQ(pair.wire.packets.size(), 1U) << "sent again while its fragments may still be under way";
  pair.wire.deliver_all();
  EXPECT_EQ(large.outcome, Errc::ok);
  TestCall small;
  pair.call(small, "x");
  pair.wire.take();
  pair.wire.pass(40ms);
  EXPECT_GE(pair.wire.packets.size(), 1U);
}

TEST(ChannelTimeoutTest, the_timeout_follows_the_round_trip_and_one_loss_does_not_disturb_it_for_long) {
  ChannelPair pair;
  pair.expect_ok("warm");
  for (int i = 0; i < 50; ++i) {
    TestCall call;
    pair.call(call, "x");
    pair.wire.pass(4ms, 1ms);
    pair.wire.deliver_all();  // at first including early retransmissions
    EXPECT_TRUE(call.done());
  }
  const auto measured = test::asked<control::RoundTrip>(*pair.session);
  EXPECT_GT(measured.smoothed, 3ms);
  EXPECT_LT(measured.smoothed, 5ms);
  EXPECT_GT(measured.retransmission_timeout, 4ms);
  EXPECT_LT(measured.retransmission_timeout, 12ms);
}

TEST(ChannelTimeoutTest, callers_that_lose_packets_do_not_make_each_other_wait_but_a_longer_round_trip_is_noticed) {
  RoundTripTimer timer(50ms, 50us, 1s);
  for (int i = 0; i < 100; ++i) timer.sample(20us, 0);
  for (int i = 0; i < 100; ++i) {
    for (int lost = 0; lost < 5; ++lost) timer.ambiguous();
    EXPECT_EQ(timer.timeout(0, {}), 50us);
    timer.sample(20us, 0);
  }
  for (int i = 0; i < 100; ++i) timer.ambiguous();  // no round trip is measured: it takes 10 ms now
  EXPECT_GT(timer.timeout(0, {}), 10ms);
  timer.sample(20us, 0);
  EXPECT_EQ(timer.timeout(0, {}), 50us);
}

TEST(ChannelTimeoutTest, a_layer_below_that_has_measured_nothing_is_given_the_time_that_it_says) {
  RoundTripTimer timer(50ms, 50us, 1s);
  for (int i = 0; i < 100; ++i) timer.sample(20us, 0);
  for (int i = 0; i < 100; ++i) timer.sample(120us, 10);
  EXPECT_GE(timer.timeout(10, {.smoothed = {}, .retransmission_timeout = 5ms}), 10ms);
  EXPECT_LT(timer.timeout(10, {.smoothed = 50us, .retransmission_timeout = 5ms}), 5ms);
}

TEST(ChannelTimeoutTest, a_procedure_that_becomes_slow_is_asked_about_once_and_then_given_its_time) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.server->at_once = false;
  const auto retransmissions = [&pair] { return ChannelPair::statistics(*pair.client_channel).retransmissions; };
  const auto slow_call = [&pair] {
    TestCall call;
    pair.call(call, "slow");
    pair.wire.deliver_all();
    for (int i = 0; i < 80; ++i) {  // for 8 ms
      pair.wire.pass(100us);
      pair.wire.deliver_all();
    }
    pair.server->answer_next();
    pair.wire.deliver_all();
    EXPECT_EQ(call.outcome, Errc::ok);
  };
  slow_call();
  const std::uint64_t at_first = retransmissions();
  EXPECT_GT(at_first, 0U);
  EXPECT_LE(at_first, 5U) << "the request once, and probes that are backed off";
  for (int i = 0; i < 20; ++i) slow_call();
  EXPECT_EQ(retransmissions(), at_first);
}

TEST(ChannelTimeoutTest, a_reply_to_each_copy_tells_that_the_first_one_was_only_late) {
  ChannelPair pair;
  pair.expect_ok("warm");
  const auto retransmissions = [&pair] { return ChannelPair::statistics(*pair.client_channel).retransmissions; };
  const auto late_call = [&pair] {
    TestCall call;
    pair.call(call, "late");
    pair.wire.pass(8ms);
    pair.wire.deliver_all();
    EXPECT_EQ(call.outcome, Errc::ok);
  };
  late_call();
  const std::uint64_t at_first = retransmissions();
  EXPECT_GT(at_first, 1U);
  for (int i = 0; i < 20; ++i) late_call();
  EXPECT_EQ(retransmissions(), at_first);
  EXPECT_EQ(pair.executions("late"), 21U);
}

TEST(ChannelTimeoutTest, a_reply_that_was_only_late_leaves_the_timeout_of_a_link_that_loses_nothing) {
  ChannelPair pair;
  const auto timeout = [&pair] { return test::asked<control::RoundTrip>(*pair.session).retransmission_timeout; };
  for (int i = 0; i < 100; ++i) pair.expect_ok("warm");
  EXPECT_EQ(timeout(), 500us);
  TestCall late;
  pair.call(late, "late");
  pair.wire.pass(600us);
  EXPECT_EQ(pair.wire.packets.size(), 2U) << "it is sent again";
  pair.wire.deliver_all();
  EXPECT_EQ(late.outcome, Errc::ok);
  pair.expect_ok("next");
  EXPECT_EQ(timeout(), 500us);
}

TEST(ChannelTimeoutTest, a_second_reply_of_another_life_or_to_another_call_tells_nothing) {
  ChannelPair pair;
  for (int i = 0; i < 100; ++i) pair.expect_ok("warm");
  TestCall late;
  pair.call(late, "late");
  pair.wire.pass(600us);
  pair.wire.deliver_next();
  pair.wire.deliver_next();
  pair.wire.deliver_next();
  ASSERT_TRUE(late.done());
  PacketWire::Packet forged = pair.wire.take();
  ASSERT_EQ(forged.flags(), channel_flags::kReply);
  ChannelHeader header = forged.header();
  ++header.boot_id;
  header.encode(reinterpret_cast<std::byte*>(forged.bytes.data()));
  pair.wire.deliver(forged);
  pair.expect_ok("next");
  EXPECT_LT(test::asked<control::RoundTrip>(*pair.session).retransmission_timeout, 500us)
      << "it is still taken for a loss";
}

/// The options of lrpc-netd's own graphs.
constexpr ChannelOptions kPatient{.give_up = 30s, .reply_life = 40s};

/// Delivers every packet for two seconds.
void join(ChannelPair& pair) {
  for (int i = 0; i < 20; ++i) {
    pair.wire.pass(100ms, 10ms);
    pair.wire.deliver_all();
  }
}

TEST(ChannelTimeoutTest, a_call_outlives_a_silence_that_is_shorter_than_give_up_whatever_was_lost_in_it) {
  for (const Duration silence : {7s, 28s}) {
    ChannelPair pair(kPatient);
    pair.expect_ok("warm");
    TestCall request_lost;
    pair.call(request_lost, "request");
    pair.wire.cut_off(silence);
    EXPECT_FALSE(request_lost.done());
    join(pair);
    EXPECT_EQ(request_lost.outcome, Errc::ok);
    TestCall reply_lost;
    pair.call(reply_lost, "reply");
    pair.wire.deliver_next();
    EXPECT_EQ(pair.executions("reply"), 1U);
    pair.wire.cut_off(silence);
    EXPECT_FALSE(reply_lost.done());
    join(pair);
    EXPECT_EQ(reply_lost.outcome, Errc::ok);
    EXPECT_EQ(pair.executions("reply"), 1U);
  }
}

TEST(ChannelTimeoutTest, a_call_ends_after_give_up_of_silence_and_one_with_a_timeout_by_that) {
  ChannelPair pair(kPatient);
  pair.expect_ok("warm");
  TestCall limited;
  pair.call(limited, "limited", 3s);
  pair.wire.cut_off(4s);
  EXPECT_EQ(limited.outcome, Errc::call_aborted);
  join(pair);
  TestCall call;
  pair.call(call, "unlimited");
  pair.wire.cut_off(29s);
  EXPECT_FALSE(call.done());
  pair.wire.cut_off(3s);
  EXPECT_EQ(call.outcome, Errc::call_failed);
}

TEST(ChannelTimeoutTest, a_call_outlives_a_pause_of_its_own_machine_however_long) {
  ChannelPair pair(kPatient);
  pair.expect_ok("warm");
  TestCall reply_lost;
  pair.call(reply_lost, "reply");
  pair.wire.deliver_next();
  pair.wire.packets.clear();
  pair.wire.stand_still(55s);
  EXPECT_FALSE(reply_lost.done()) << "the server has been asked nothing, and so was not silent";
  join(pair);
  EXPECT_EQ(reply_lost.outcome, Errc::ok);
  EXPECT_EQ(pair.executions("reply"), 1U);
  TestCall request_late;
  pair.call(request_late, "request");
  pair.wire.stand_still(55s);
  pair.wire.stand_still(55s);
  join(pair);
  EXPECT_EQ(request_late.outcome, Errc::ok);
  EXPECT_EQ(pair.executions("request"), 1U);
}

TEST(ChannelTimeoutTest, a_pause_of_its_own_machine_does_not_have_a_call_executed_that_the_server_may_have_forgotten) {
  ChannelPair pair(kPatient);
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "request");
  pair.wire.deliver_next();
  EXPECT_EQ(pair.executions("request"), 1U);
  pair.wire.packets.clear();
  {
    const Shepherd inside(pair.wire[1].host.monitor());
    control::Request forget = control::DropIdle{};
    (void)pair.server_channel->control(forget);
  }
  pair.wire.stand_still(200s);
  join(pair);
  EXPECT_EQ(call.outcome, Errc::call_failed);
  EXPECT_EQ(pair.executions("request"), 1U);
}

TEST(ChannelTimeoutTest, a_silence_ends_a_call_also_where_a_pause_of_its_own_machine_came_before) {
  ChannelPair pair(kPatient);
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "request");
  pair.wire.packets.clear();
  pair.wire.stand_still(100s);
  pair.wire.cut_off(28s);
  EXPECT_FALSE(call.done());
  pair.wire.cut_off(3s);
  EXPECT_EQ(call.outcome, Errc::call_failed);
}

}  // namespace
}  // namespace lrpc::netrpc
