// What one host makes this one keep is no other host's loss.
#include "netrpc/protocols/paired/test/paired_pair.h"

namespace lrpc::netrpc::paired {
namespace {

constexpr std::size_t kGreedy = 2;
constexpr std::size_t kHonest = 3;
constexpr std::uint16_t kChannels = 60;

struct Shares : testing::Test {
  /// First segments of longer requests, each on a channel of its own; or whole requests, if they are the last ones.
  void send_first_segments(std::uint16_t control) {
    for (std::uint16_t channel = 1; channel <= kChannels; ++channel)
      pair.forge({.control = control,
                  .segment = 1,
                  .call_number = 1,
                  .conversation = pair.meet(kGreedy, channel),
                  .channel = channel},
                 std::string(kSegment, 'x'), kGreedy);
    pair.wire.packets.clear();
  }
  void expect_ok(std::string_view text) {
    const SessionRef session = pair.open(kHonest);
    TestCall call;
    pair.call(*session, call, text);
    for (int i = 0; i < 1000 && !call.done(); ++i) {
      pair.wire.deliver_all();
      pair.wire.pass(std::chrono::milliseconds(1));
      if (!pair.server->pending.empty()) pair.answer(text);
    }
    EXPECT_TRUE(call.done());
    EXPECT_EQ(call.outcome, Errc::ok);
    EXPECT_EQ(call.reply, text);
  }

  PairedPair pair{{.memory = 40 * BufferPool::kSizes[1]}, 4};
  const std::string large = std::string(10'000, 'y');
};

TEST_F(Shares, requests_of_others_are_received_while_those_of_one_host_are_never_finished) {
  send_first_segments(bits::kPleaseAck);
  expect_ok(large);
}

TEST_F(Shares, replies_to_others_are_sent_while_one_host_takes_none_of_its_own) {
  pair.server->at_once = false;
  send_first_segments(bits::kLastSegment);
  ASSERT_EQ(pair.server->pending.size(), kChannels);
  while (!pair.server->pending.empty()) pair.answer(large);
  pair.wire.packets.clear();
  expect_ok(large);
}

TEST(SharesOfSessions, are_left_to_the_next_host_by_those_that_have_many) {
  PairedPair few({.sessions = 8}, 7);
  for (const std::size_t from : {2U, 3U, 4U, 5U, 6U}) {
    const std::size_t before = few.server->executed.size();
    for (std::uint16_t channel = 1; channel <= 10; ++channel)
      few.forge({.control = bits::kLastSegment,
                 .segment = 1,
                 .call_number = 1,
                 .conversation = few.meet(from, channel),
                 .channel = channel},
                "x", from);
    EXPECT_GT(few.server->executed.size(), before) << from;
  }
  EXPECT_EQ(few.statistics().sessions, 8U);
}

TEST_F(Shares, messages_of_one_host_that_are_together_more_than_its_part_are_all_finished) {
  std::vector<SessionRef> sessions;
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 8; ++i) {
    sessions.push_back(pair.open(kHonest));
    pair.call(*sessions.back(), *calls.emplace_back(std::make_unique<TestCall>()), large);
  }
  for (int i = 0; i < 10'000 && !std::ranges::all_of(calls, [](const auto& call) { return call->done(); }); ++i)
    pair.arrives();  // in turn
  for (const auto& call : calls) EXPECT_EQ(call->reply, large);
}

}  // namespace
}  // namespace lrpc::netrpc::paired
