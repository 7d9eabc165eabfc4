// Memory that one host makes this host keep must not be taken from other hosts' shares.
#include <algorithm>

#include "netrpc/protocols/paired/test/paired_pair.h"

namespace lrpc::netrpc::paired {
namespace {

constexpr std::size_t kGreedy = 2;
constexpr std::size_t kHonest = 3;
constexpr std::uint16_t kChannels = 60;

struct Shares : testing::Test {
  /// Sends first segments of requests, each on its own channel. If `control` marks them as the last ones, they are
  /// whole requests.
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
  ASSERT_FALSE(pair.server->pending.empty());
  while (!pair.server->pending.empty()) pair.answer(large);
  pair.wire.packets.clear();
  expect_ok(large);
}

TEST_F(Shares, replies_in_one_buffer_are_kept_for_all_requests_that_are_executed) {
  pair.server->at_once = false;
  send_first_segments(bits::kLastSegment);
  while (!pair.server->pending.empty()) pair.answer("y");
  for (const PacketWire::Packet& packet : pair.wire.packets)
    EXPECT_FALSE(PairedPair::header_of(packet).has(bits::kLost));
}

TEST_F(Shares, calls_that_are_more_than_the_replies_that_are_kept_wait_and_none_is_lost) {
  std::vector<SessionRef> sessions;
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 20; ++i) {
    sessions.push_back(pair.open(kHonest));
    pair.call(*sessions.back(), *calls.emplace_back(std::make_unique<TestCall>()), "x");
  }
  pair.server->at_once = false;
  const auto done = [&] { return std::ranges::count_if(calls, [](const auto& call) { return call->done(); }); };
  for (int i = 0; i < 20'000 && done() < 20; ++i) {
    if (!pair.wire.packets.empty()) pair.wire.deliver_next();
    pair.wire.pass(std::chrono::milliseconds(1), std::chrono::milliseconds(1));
    // Each reply takes two buffers of the largest size, which is all of the host's share.
    if (!pair.server->pending.empty()) pair.answer(std::string(25'000, 'y'));
  }
  for (const auto& call : calls) EXPECT_EQ(call->outcome, Errc::ok);
  EXPECT_EQ(pair.executions("x"), 20U);
}

/// PAIRED predicts the size of the next reply to a host from its earlier replies to that host.
TEST_F(Shares, long_replies_that_are_made_together_are_kept_after_the_first_one) {
  std::vector<SessionRef> sessions;
  for (int i = 0; i < 20; ++i) sessions.push_back(pair.open(kHonest));
  pair.server->at_once = false;
  const auto most_at_a_time = [&](std::size_t count, std::string_view reply) {
    std::vector<TestCall> calls(count);
    std::size_t most = 0;
    for (std::size_t i = 0; i < count; ++i) pair.call(*sessions[i], calls[i], "x");
    for (int i = 0; i < 100 && !std::ranges::all_of(calls, &TestCall::done); ++i) {
      for (int j = 0; j < 100; ++j) {
        pair.wire.deliver_all();
        pair.wire.pass(std::chrono::milliseconds(1), std::chrono::milliseconds(1));
      }
      most = std::max(most, pair.server->pending.size());
      while (!pair.server->pending.empty()) pair.answer(reply);
    }
    for (const TestCall& call : calls) EXPECT_EQ(call.outcome, Errc::ok);
    return most;
  };
  EXPECT_EQ(most_at_a_time(1, large), 1U);
  EXPECT_EQ(most_at_a_time(20, large), 2U) << "the host's part";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(most_at_a_time(1, "short"), 1U);
  EXPECT_EQ(most_at_a_time(20, "short"), 18U) << "as before the long ones";
}

/// More channels call again and again than there is room for.
TEST(SharesOfMemory, are_for_all_channels_of_a_host_in_turn) {
  constexpr std::size_t kCalls = 30;
  PairedPair pair({.memory = 12 * BufferPool::kSizes[1]});
  std::vector<SessionRef> sessions;
  std::vector<std::unique_ptr<TestCall>> calls(kCalls);
  std::vector<int> done(kCalls);
  for (std::size_t i = 0; i < kCalls; ++i) sessions.push_back(pair.open(0));
  for (int round = 0; round < 300; ++round) {
    for (std::size_t i = 0; i < kCalls; ++i) {
      if (calls[i] && !calls[i]->done()) continue;
      if (calls[i]) ++done[i];
      pair.call(*sessions[i], *(calls[i] = std::make_unique<TestCall>()), "x");
    }
    pair.wire.deliver_all();
    pair.wire.pass(std::chrono::milliseconds(1), std::chrono::milliseconds(1));
  }
  EXPECT_GT(*std::ranges::min_element(done), 0) << "one waits while others are served again and again";
}

/// Three hosts leave the fourth room for one call at a time. The fourth waits for theirs to end, not for its own long
/// call.
TEST(SharesOfMemory, are_used_by_the_host_that_waits_as_soon_as_others_give_them_back) {
  PairedPair pair({.memory = 16 * BufferPool::kSizes[1]}, 5);
  pair.server->at_once = false;
  std::vector<SessionRef> sessions;
  std::vector<std::unique_ptr<TestCall>> calls;
  const auto start = [&](std::size_t host, int count) {
    for (int i = 0; i < count; ++i) {
      sessions.push_back(pair.open(host));
      pair.call(*sessions.back(), *calls.emplace_back(std::make_unique<TestCall>()), "x");
      pair.wire.deliver_all();
    }
  };
  start(2, 7);
  start(3, 4);
  start(4, 2);
  start(0, 2);
  const auto pass = [&](int milliseconds) {
    for (int i = 0; i < milliseconds; ++i) {
      pair.wire.deliver_all();
      pair.wire.pass(std::chrono::milliseconds(1), std::chrono::milliseconds(1));
    }
  };
  pass(5'000);  // requests are retransmitted until they are acknowledged
  ASSERT_EQ(pair.server->pending.size(), 14U);
  for (int i = 0; i < 13; ++i) pair.answer("y");
  pass(10);
  EXPECT_EQ(pair.server->executed.size(), 15U);
}

TEST(SharesOfMemory, count_short_replies_in_large_buffers_for_what_they_take) {
  constexpr std::size_t kMemory = 10 * BufferPool::kSizes[2];
  PairedPair pair({.memory = kMemory});
  Host& host = pair.wire[1].host;
  pair.server->at_once = false;
  for (std::uint16_t channel = 1; channel <= 20; ++channel) {
    pair.forge({.control = bits::kLastSegment,
                .segment = 1,
                .call_number = 1,
                .conversation = pair.meet(0, channel),
                .channel = channel},
               "x");
    if (pair.server->pending.empty()) continue;
    const Shepherd inside(host.monitor());
    Message reply = Message::make(host.pool(), 16'000);
    reply.truncate(2000);
    const SessionRef to = std::exchange(pair.server->pending.front().first, {});
    pair.server->pending.pop_front();
    to->reply(std::move(reply));
  }
  EXPECT_EQ(pair.server->executed.size(), 5U) << "more than that is more than the host's part";
}

TEST(SharesOfMemory, count_short_segments_in_large_buffers_for_what_they_take) {
  constexpr std::uint16_t kMany = 300;
  PairedPair pair({}, 4);
  std::vector<std::uint64_t> conversations;
  for (std::uint16_t channel = 1; channel <= kMany; ++channel) conversations.push_back(pair.meet(kGreedy, channel));
  const std::string padded(3000, 'x');
  // First the host's whole share; then single first segments, which wait in receive buffers.
  for (std::uint16_t channel = 1; channel <= kMany; ++channel) {
    const std::uint16_t segments = channel <= 15 ? 250 : 1;
    for (std::uint16_t segment = 1; segment <= segments; ++segment)
      pair.forge({.control = bits::kPleaseAck,
                  .segment = segment,
                  .call_number = 1,
                  .conversation = conversations[channel - 1U],
                  .channel = channel,
                  .length = kLeastSegment},
                 padded, kGreedy);
    pair.wire.packets.clear();
  }
  EXPECT_TRUE(Message::make(pair.wire[1].host.pool(), 16'000).allocated());
  const SessionRef session = pair.open(kHonest);
  TestCall call;
  pair.call(*session, call, std::string(10'000, 'y'));
  pair.wire.deliver_all();
  EXPECT_TRUE(call.done());
  EXPECT_EQ(call.reply, std::string(10'000, 'y'));
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
    pair.arrives();  // in round-robin order
  for (const auto& call : calls) EXPECT_EQ(call->reply, large);
}

}  // namespace
}  // namespace lrpc::netrpc::paired
