// The paper's examples (§2.9), packet by packet.
#include "paired_pair.h"

namespace lrpc::netrpc::paired {
namespace {

using Record = std::vector<std::string>;

/// A client and a server that know each other: in the paper, nothing is asked before the first call.
struct Acquainted : PairedPair {
  Acquainted() {
    expect_ok("before");
    server->at_once = false;
  }
};

TEST(PairedFiguresTest, figure_3_single_segment_call_and_return) {
  PairedPair pair;
  pair.expect_ok("before");
  for (const std::string text : {"first", "second"}) {
    TestCall call;
    pair.call(call, text);
    pair.arrives();
    pair.arrives();
    EXPECT_EQ(call.outcome, Errc::ok);
    EXPECT_EQ(call.reply, text);
  }
  EXPECT_EQ(pair.record, (Record{
                             "client: LAST_SEG 1",  // the request
                             "server: LAST_SEG 1",  // the response, which acknowledges it
                             "client: LAST_SEG 1",  // the next request, which acknowledges that
                             "server: LAST_SEG 1",
                         }));
  EXPECT_EQ(PairedPair::statistics(*pair.clients[0].paired).retransmissions, 0U);
}

TEST(PairedFiguresTest, figure_4_multiple_segment_call_single_segment_return_with_probing_and_retransmissions) {
  Acquainted pair;
  TestCall call;
  pair.call(call, std::string(1500, 'x'));
  pair.is_lost();
  pair.arrives();  // after the retransmission timeout
  pair.arrives();
  pair.is_lost();
  pair.arrives();  // after the retransmission timeout
  pair.arrives();
  pair.arrives();  // after the probe timeout
  pair.arrives();
  ASSERT_EQ(pair.server->pending.size(), 1U);  // the procedure has been invoked
  EXPECT_FALSE(call.done());
  pair.answer("done");
  pair.arrives();
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(call.reply, "done");
  pair.session = {};  // the client closes the session
  pair.arrives();     // after the retransmission timeout
  pair.arrives();
  EXPECT_EQ(pair.record, (Record{
                             "client: PLEASE_ACK 1 (lost)",    // 1 request, first segment
                             "client: PLEASE_ACK 1",           // 2
                             "server: ACK 1",                  // 3
                             "client: LAST_SEG 2 (lost)",      // 4
                             "client: PLEASE_ACK LAST_SEG 2",  // 5
                             "server: ACK 2",                  // 6
                             "client: PROBE",                  // 7
                             "server: ACK PROBE",              // 8
                             "server: LAST_SEG 1",             // 9 response
                             "server: PLEASE_ACK LAST_SEG 1",  // 10
                             "client: ACK 1",                  // 11
                         }));
  pair.wire.pass(std::chrono::seconds(30), std::chrono::milliseconds(10));
  EXPECT_TRUE(pair.wire.packets.empty());  // neither end has anything to retransmit
}

/// Not in the figures (§2.6): the receiver of a message of several segments probes between them.
TEST(PairedFiguresTest, the_server_probes_between_the_segments_of_a_request_and_the_client_between_those_of_a_reply) {
  Acquainted pair;
  TestCall call;
  pair.call(call, std::string(1500, 'x'));
  pair.arrives();
  pair.arrives();
  pair.loses_all_of("client");
  EXPECT_EQ(pair.record.back(), "server: PROBE");
  pair.arrives();
  EXPECT_EQ(pair.record.back(), "client: ACK PROBE");
  while (pair.server->pending.empty()) pair.arrives();
  while (!pair.wire.packets.empty()) pair.arrives();
  pair.answer(std::string(1500, 'y'));
  pair.arrives();
  pair.arrives();
  EXPECT_EQ(pair.record.back(), "client: ACK 1");
  pair.loses_all_of("server");
  EXPECT_EQ(pair.record.back(), "client: PROBE");
  pair.arrives();
  EXPECT_EQ(pair.record.back(), "server: ACK PROBE");
  while (!call.done()) pair.arrives();
  EXPECT_EQ(call.reply, std::string(1500, 'y'));
}

/// §2.6, §2.7: a long call costs few probes, and ends when the server falls silent.
TEST(PairedFiguresTest, probes_back_off_to_five_minutes_while_they_are_acknowledged_and_are_counted_while_not) {
  using std::chrono::milliseconds;
  Acquainted pair;
  TestCall call;
  pair.call(call, "long");
  pair.arrives();  // the request
  pair.arrives();  // retransmitted, because no reply comes
  pair.arrives();
  EXPECT_EQ(pair.record.back(), "server: ACK 1");
  std::vector<std::int64_t> waited;
  for (int i = 0; i < 12; ++i) {
    const Time before = pair.wire.clock.time;
    pair.arrives();
    EXPECT_EQ(pair.record.back(), "client: PROBE");
    waited.push_back((pair.wire.clock.time - before) / milliseconds(1));
    pair.arrives();
    EXPECT_EQ(pair.record.back(), "server: ACK PROBE");
  }
  EXPECT_EQ(waited, (std::vector<std::int64_t>{500, 1'000, 2'000, 4'000, 8'000, 16'000, 32'000, 64'000, 128'000,
                                               256'000, 300'000, 300'000}));
  pair.is_lost();
  for (unsigned again = 0; again < pair.options.max_retry; ++again) {
    const Time before = pair.wire.clock.time;
    pair.is_lost();
    EXPECT_EQ((pair.wire.clock.time - before) / milliseconds(1), 500);
  }
  EXPECT_FALSE(call.done());
  pair.wire.pass(milliseconds(500), milliseconds(1));
  EXPECT_EQ(call.outcome, Errc::call_failed);
}

TEST(PairedFiguresTest, a_client_asks_for_a_conversation_before_its_first_call_only) {
  PairedPair pair;
  for (int i = 0; i < 2; ++i) {
    TestCall call;
    pair.call(call, "x");
    while (!call.done()) pair.arrives();
  }
  EXPECT_EQ(pair.record, (Record{"client: PROBE", "server: ACK PROBE", "client: LAST_SEG 1", "server: LAST_SEG 1",
                                 "client: LAST_SEG 1", "server: LAST_SEG 1"}));
}

}  // namespace
}  // namespace lrpc::netrpc::paired
