// CHANNEL's large requests: the client asks the server before it retransmits one.
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/channel/test/channel_pair.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
namespace flags = channel_flags;

/// A request of three packets on the wire of these tests.
const std::string kLarge(4000, 'x');

/// Advances the clock until a packet is sent.
PacketWire::Packet next_packet(ChannelPair& pair) {
  for (int i = 0; i < 10'000 && pair.wire.packets.empty(); ++i) pair.wire.pass(100us);
  return pair.wire.take();
}

struct LargeCall : ChannelPair {
  LargeCall() {
    for (int i = 0; i < 5; ++i) expect_ok(kLarge);
    server->executed.clear();
    ChannelPair::call(call, kLarge);
  }
  TestCall call;
};

TEST(ChannelQuestionsTest, a_large_request_whose_reply_is_lost_is_asked_for_and_not_sent_again) {
  LargeCall pair;
  pair.wire.deliver_next();
  EXPECT_EQ(pair.wire.take().flags(), flags::kReply);
  const PacketWire::Packet question = next_packet(pair);
  EXPECT_EQ(question.flags(), flags::kDoYouHave);
  EXPECT_TRUE(question.data().empty());
  pair.wire.deliver(question);
  pair.wire.deliver_all();
  EXPECT_EQ(pair.call.outcome, Errc::ok);
  EXPECT_EQ(pair.call.reply, kLarge);
  EXPECT_EQ(pair.executions(kLarge), 1U);
}

TEST(ChannelQuestionsTest, a_large_request_is_sent_again_when_the_server_says_that_it_lacks_it) {
  LargeCall pair;
  pair.wire.take();
  pair.wire.deliver(next_packet(pair));
  const PacketWire::Packet lacking = pair.wire.take();
  EXPECT_EQ(lacking.flags(), flags::kLacking);
  EXPECT_EQ(pair.executions(kLarge), 0U);
  pair.wire.deliver(lacking);
  const PacketWire::Packet again = next_packet(pair);
  EXPECT_EQ(again.flags(), flags::kRequest);
  EXPECT_EQ(again.data(), kLarge);
  pair.wire.deliver(again);
  // The reply is lost, and the LACKING packet arrives again, late.
  pair.wire.take();
  pair.wire.deliver(lacking);
  pair.wire.deliver(next_packet(pair));
  pair.wire.deliver_all();
  EXPECT_EQ(pair.call.outcome, Errc::ok);
  EXPECT_EQ(pair.executions(kLarge), 1U);
}

TEST(ChannelQuestionsTest, requests_that_were_lost_in_part_do_not_make_later_ones_be_asked_about_later) {
  ChannelPair pair;
  for (int i = 0; i < 5; ++i) pair.expect_ok(kLarge);
  // The request arrives some time after the server has said that it lacks it. Returns how long the client waited to
  // ask.
  const auto lost_in_part = [&pair] {
    TestCall call;
    pair.call(call, kLarge);
    const PacketWire::Packet request = pair.wire.take();
    const Time sent = pair.wire.clock.time;
    const PacketWire::Packet question = next_packet(pair);
    const Duration asked_after = pair.wire.clock.time - sent;
    EXPECT_EQ(question.flags(), flags::kDoYouHave);
    pair.wire.deliver(question);
    pair.wire.deliver_all();
    pair.wire.pass(4ms);
    pair.wire.packets.clear();
    pair.wire.deliver(request);
    pair.wire.deliver_all();
    EXPECT_EQ(call.outcome, Errc::ok);
    return asked_after;
  };
  lost_in_part();
  const Duration at_first = lost_in_part();
  for (int i = 0; i < 20; ++i) lost_in_part();
  EXPECT_LE(lost_in_part(), at_first);
}

TEST(ChannelQuestionsTest, a_reply_that_crosses_its_question_is_waited_for_the_next_time) {
  ChannelPair pair;
  for (int i = 0; i < 5; ++i) pair.expect_ok(kLarge);
  const auto retransmissions = [&pair] { return ChannelPair::statistics(*pair.client_channel).retransmissions; };
  const auto late_call = [&pair] {
    TestCall call;
    pair.call(call, kLarge);
    pair.wire.pass(1ms);
    pair.wire.deliver_all();
    EXPECT_EQ(call.outcome, Errc::ok);
  };
  for (int i = 0; i < 20; ++i) late_call();
  const std::uint64_t at_first = retransmissions();
  EXPECT_GT(at_first, 0U);
  for (int i = 0; i < 20; ++i) late_call();
  EXPECT_EQ(retransmissions(), at_first);
}

TEST(ChannelQuestionsTest, a_server_that_has_answered_a_question_is_not_sent_the_request_for_want_of_another_answer) {
  LargeCall pair;
  pair.wire.take();
  pair.wire.deliver(next_packet(pair));
  pair.wire.deliver_all();  // the server says that it lacks the request
  EXPECT_EQ(next_packet(pair).flags(), flags::kRequest);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(next_packet(pair).flags(), flags::kDoYouHave) << i;
}

TEST(ChannelQuestionsTest, a_server_that_works_on_a_large_request_acknowledges_it_when_asked) {
  LargeCall pair;
  pair.server->at_once = false;
  pair.wire.deliver_next();
  pair.wire.deliver(next_packet(pair));
  EXPECT_EQ(pair.wire.packets.at(0).flags(), flags::kAck);
  pair.wire.deliver_all();
  EXPECT_EQ(next_packet(pair).flags(), flags::kPleaseAck);
  pair.server->answer_next();
  pair.wire.deliver_all();
  EXPECT_EQ(pair.call.outcome, Errc::ok);
}

TEST(ChannelQuestionsTest, a_large_request_is_sent_again_to_a_server_that_knows_no_questions) {
  LargeCall pair;
  pair.wire.take();
  PacketWire::Packet sent = next_packet(pair);
  int questions = 0;
  for (; sent.flags() == flags::kDoYouHave && questions < 10; ++questions) sent = next_packet(pair);
  EXPECT_EQ(questions, 3);
  EXPECT_EQ(sent.flags(), flags::kRequest);
  pair.wire.deliver(sent);
  pair.wire.deliver_all();
  EXPECT_EQ(pair.call.outcome, Errc::ok);
}

TEST(ChannelQuestionsTest, a_large_request_that_never_arrives_fails_its_call_though_the_server_says_so) {
  LargeCall pair;
  pair.wire.take();
  for (int i = 0; i < 70 && !pair.call.done(); ++i) {
    pair.wire.pass(100ms);
    std::erase_if(pair.wire.packets, [](const auto& packet) { return packet.flags() == flags::kRequest; });
    pair.wire.deliver_all();
    std::erase_if(pair.wire.packets, [](const auto& packet) { return packet.flags() == flags::kRequest; });
  }
  EXPECT_EQ(pair.call.outcome, Errc::call_failed);
  EXPECT_EQ(pair.executions(kLarge), 0U);
}

/// A link below has a smaller MTU now: a request that the layer below accepted before has become too long for it.
TEST(ChannelQuestionsTest, a_request_that_cannot_be_sent_again_any_more_ends_its_call_at_once) {
  LargeCall pair;
  pair.wire.take();
  const std::size_t maximum = std::exchange(pair.wire[0].end.maximum, 600);
  pair.wire.deliver(next_packet(pair));
  EXPECT_EQ(pair.wire.packets.at(0).flags(), flags::kLacking);
  for (int i = 0; i < 100 && !pair.call.done(); ++i) {
    pair.wire.deliver_all();
    pair.wire.pass(1ms);
  }
  EXPECT_EQ(pair.call.outcome, Errc::call_lost) << "the first copy may still arrive";
  EXPECT_EQ(pair.call.completions, 1);
  pair.wire.packets.clear();
  pair.expect_ok("small");
  pair.wire[0].end.maximum = maximum;
  pair.expect_ok(kLarge);
}

TEST(ChannelQuestionsTest, an_answer_that_may_belong_to_an_older_question_measures_nothing) {
  ChannelPair pair;
  for (int i = 0; i < 5; ++i) {
    TestCall small;
    pair.call(small, "small");
    while (!small.done()) {
      pair.wire.pass(100us);
      pair.wire.deliver_next();
    }
  }
  const auto round_trip = [&pair] {
    control::RoundTrip time;
    EXPECT_EQ(control::ask(*pair.session, time), Errc::ok);
    return time.smoothed;
  };
  TestCall call;
  pair.call(call, kLarge);
  pair.wire.take();
  const auto answer_to = [&pair](const PacketWire::Packet& question) {
    pair.wire.deliver(question);
    EXPECT_EQ(pair.wire.packets.at(0).flags(), flags::kLacking);
    return pair.wire.take();
  };
  const PacketWire::Packet first = answer_to(next_packet(pair));
  const PacketWire::Packet second = answer_to(next_packet(pair));
  pair.wire.deliver(first);
  const Duration before = round_trip();
  EXPECT_GT(before, Duration::zero());
  for (PacketWire::Packet sent = next_packet(pair); sent.flags() != flags::kDoYouHave;) sent = next_packet(pair);
  pair.wire.deliver(second);  // answers an earlier question than the last one
  EXPECT_EQ(round_trip(), before);
}

}  // namespace
}  // namespace lrpc::netrpc
