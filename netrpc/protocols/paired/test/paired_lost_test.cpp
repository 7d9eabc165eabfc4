// PAIRED: calls whose request or reply no longer fits the link. They end at once, and no other call does. And a call
// that cannot be begun.
#include "netrpc/protocols/paired/test/paired_pair.h"

namespace lrpc::netrpc::paired {
namespace {

using namespace std::chrono_literals;

/// A server that answers on demand, and a link whose MTU can shrink.
struct ShrinkingPair : PairedPair {
  ShrinkingPair() {
    expect_ok("warm");
    server->at_once = false;
  }
  void shrink(std::size_t host) { wire[host].end.maximum = 500; }
  void expect_that_the_next_call_is_answered() {
    wire.packets.clear();
    server->at_once = true;
    expect_ok("next");
  }
  void expect_next(const char* packet) {
    arrives();
    EXPECT_EQ(record.back(), packet);
  }
};

TEST(PairedLostTest, a_reply_that_the_link_no_longer_carries_loses_its_call) {
  ShrinkingPair pair;
  TestCall call;
  pair.call(call, "x");
  pair.arrives();
  pair.shrink(1);
  pair.answer(std::string(800, 'x'));
  pair.expect_next("server: LOST");
  EXPECT_EQ(call.outcome, Errc::call_lost);
  EXPECT_EQ(call.completions, 1);
  pair.expect_that_the_next_call_is_answered();
  EXPECT_EQ(pair.executions("x"), 1U);
}

TEST(PairedLostTest, a_refused_request_loses_its_call) {
  ShrinkingPair pair;
  TestCall call;
  pair.call(call, "x");
  pair.arrives();
  EXPECT_EQ(pair.server->refuse_next(), Errc::ok);
  pair.expect_next("server: LOST");
  EXPECT_EQ(call.outcome, Errc::call_lost);
  pair.expect_that_the_next_call_is_answered();
}

TEST(PairedLostTest, a_client_that_has_not_heard_that_its_reply_is_lost_is_told_again) {
  for (const bool acknowledged : {false, true}) {
    ShrinkingPair pair;
    TestCall call;
    pair.call(call, "x");
    pair.arrives();
    if (acknowledged) {
      pair.expect_next("client: PLEASE_ACK LAST_SEG 1");
      pair.expect_next("server: ACK 1");
    }
    pair.shrink(1);
    pair.answer(std::string(800, 'x'));
    pair.is_lost();
    pair.expect_next(acknowledged ? "client: PROBE" : "client: PLEASE_ACK LAST_SEG 1");
    pair.expect_next("server: LOST");
    EXPECT_EQ(call.outcome, Errc::call_lost);
    pair.expect_that_the_next_call_is_answered();
  }
}

TEST(PairedLostTest, a_reply_of_which_a_part_has_arrived_loses_its_call) {
  ShrinkingPair pair;
  TestCall call;
  pair.call(call, "x");
  pair.arrives();
  pair.answer(std::string(3 * kSegment, 'x'));
  pair.arrives();
  pair.shrink(1);
  pair.expect_next("client: ACK 1");
  pair.expect_next("server: LOST");
  EXPECT_EQ(call.outcome, Errc::call_lost);
  pair.expect_that_the_next_call_is_answered();
}

TEST(PairedLostTest, a_request_that_cannot_be_sent_again_loses_its_call) {
  ShrinkingPair pair;
  TestCall call;
  pair.call(call, std::string(800, 'x'));
  pair.is_lost();
  pair.shrink(0);
  pair.wire.pass(100ms);
  EXPECT_EQ(call.outcome, Errc::call_lost);
  pair.expect_that_the_next_call_is_answered();
}

TEST(PairedLostTest, a_request_of_which_a_part_has_arrived_loses_its_call) {
  ShrinkingPair pair;
  TestCall call;
  pair.call(call, std::string(3 * kSegment, 'x'));
  pair.arrives();
  pair.shrink(0);
  pair.expect_next("server: ACK 1");
  EXPECT_EQ(call.outcome, Errc::call_lost);
  pair.expect_that_the_next_call_is_answered();
  EXPECT_EQ(pair.server->executed.size(), 2U);
}

TEST(PairedLostTest, a_server_that_could_not_be_asked_for_a_conversation_is_not_said_to_be_unreachable) {
  PairedPair pair({.max_retry = 5});
  pair.wire[0].end.refuses = Errc::limit_reached;
  TestCall call;
  pair.call(call, "x");
  pair.wire.pass(10s, 1ms);
  EXPECT_EQ(call.outcome, Errc::limit_reached);
  EXPECT_EQ(call.completions, 1);

  TestCall asked;
  pair.call(asked, "x");
  pair.wire[0].end.refuses = Errc::ok;  // from the second probe on; nobody answers
  pair.wire.pass(10s, 1ms);
  EXPECT_EQ(asked.outcome, Errc::host_unreachable);
  pair.wire.packets.clear();
  pair.expect_ok("next");
}

TEST(PairedLostTest, no_word_but_that_of_its_own_call_and_conversation_ends_a_call) {
  ShrinkingPair pair;
  TestCall call;
  pair.call(call, "x");
  Header word = PairedPair::header_of(pair.wire.packets.at(0));
  pair.arrives();
  word.control = bits::kFromServer | bits::kLost;
  word.segment = word.length = 0;
  const auto forge = [&](auto change, std::size_t from = 1) {
    Header forged = word;
    change(forged);
    pair.forge(forged, {}, from, 0);
  };
  forge([](Header& header) { ++header.call_number; });
  forge([](Header& header) { ++header.conversation; });
  forge([](Header& header) { header.conversation += std::uint64_t{1} << 32; });
  forge([](Header& header) { ++header.channel; });
  forge([](Header& header) { header.control = bits::kLost; });
  forge([](Header& header) { header.control |= bits::kProbe | bits::kAck; });
  forge([](Header&) {}, 0);
  EXPECT_FALSE(call.done());
  forge([](Header&) {});
  EXPECT_EQ(call.outcome, Errc::call_lost);
  forge([](Header&) {});
  EXPECT_EQ(call.completions, 1);
}

}  // namespace
}  // namespace lrpc::netrpc::paired
