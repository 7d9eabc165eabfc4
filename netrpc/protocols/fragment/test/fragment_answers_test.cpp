// FRAGMENT when the answers to a request arrive out of order, and how long it waits for them.
#include "netrpc/protocols/fragment/test/fragment_hosts.h"

namespace lrpc::netrpc {
namespace {

/// Messages of which only the first and the last of 16 fragments arrive. The test holds back the answers to the request
/// for the others until all are sent. The round trip of 20 us is known.
struct HeldAnswers {
  using Answers = std::vector<std::pair<Session*, Message>>;
  static constexpr std::size_t kAnswers = 14;

  HeldAnswers() {
    b.enable();
    const Shepherd inside(pair[0].monitor());
    session = *a.fragment->open(*a.sink, pair.to(1));
  }
  void learn_round_trip() {
    for (int i = 0; i < 20; ++i) {
      push(6, [](unsigned at) { return at != 1; });
      pair.world.run_for(1ms);
    }
  }
  /// Delivers the answers in the order of `reorder`, with `apart` between them.
  template <typename Reorder>
  void push_and_answer(Reorder reorder, Duration apart) {
    push(kAnswers + 2, [](unsigned at) { return at == 0 || at == kAnswers + 1; });
    Answers held;
    a.tap.on_push = [&held](Session& lower, Message fragment) { held.emplace_back(&lower, std::move(fragment)); };
    for (int i = 0; i < 1000 && held.size() < kAnswers; ++i) pair.world.run_for(1us);
    a.tap.on_push = nullptr;
    ASSERT_EQ(held.size(), kAnswers);
    reorder(held);
    for (auto& answer : held) {
      {
        const Shepherd inside(pair[0].monitor());
        EXPECT_EQ(answer.first->push(std::move(answer.second)), Errc::ok);
      }
      if (apart != Duration::zero()) pair.world.run_for(apart);
    }
    pair.world.run_for(10ms);
  }
  std::uint64_t requests() { return b.statistics().sent; }
  std::uint64_t sent_again() { return a.statistics().retransmissions; }
  std::size_t received() { return b.sink->received.size(); }

  template <typename Arrives>
  void push(std::size_t fragments, Arrives arrives) {
    const Shepherd inside(pair[0].monitor());
    a.tap.on_push = [&arrives, at = 0U](Session& lower, Message fragment) mutable {
      if (arrives(at++)) (void)lower.push(std::move(fragment));
    };
    Message message = pair.message(0, text(kCut));
    for (std::size_t i = 1; i < fragments; ++i) EXPECT_TRUE(message.append(pair.message(0, text(kCut))));
    EXPECT_EQ(session->push(std::move(message)), Errc::ok);
    a.tap.on_push = nullptr;
  }
  SimHosts pair{2};
  FragmentHost a{pair[0]};
  FragmentHost b{pair[1]};
  SessionRef session;
};

void reverse(HeldAnswers::Answers& answers) { std::reverse(answers.begin(), answers.end()); }
void swap_neighbours(HeldAnswers::Answers& answers) {
  for (std::size_t i = 1; i < answers.size(); i += 2) std::swap(answers[i - 1], answers[i]);
}

TEST(FragmentAnswersTest, answers_that_arrive_in_another_order_are_asked_for_once_more_at_most) {
  for (const auto reorder : {reverse, swap_neighbours}) {
    for (const Duration apart : {Duration(0us), Duration(1us), Duration(4us)}) {
      SCOPED_TRACE(testing::Message() << (reorder == reverse ? "reversed, " : "swapped, ") << apart.count());
      HeldAnswers hosts;
      hosts.learn_round_trip();
      const std::uint64_t requests = hosts.requests();
      const std::uint64_t sent_again = hosts.sent_again();
      hosts.push_and_answer(reorder, apart);
      EXPECT_EQ(hosts.received(), 21U);
      EXPECT_LE(hosts.requests() - requests, 2U);
      EXPECT_LE(hosts.sent_again() - sent_again, 2 * HeldAnswers::kAnswers - 1);
      // By now this order of arrival is expected.
      const std::uint64_t requests_then = hosts.requests();
      hosts.push_and_answer(reorder, apart);
      EXPECT_EQ(hosts.received(), 22U);
      EXPECT_EQ(hosts.requests() - requests_then, 1U);
    }
  }
}

TEST(FragmentAnswersTest, answers_that_come_most_of_a_round_trip_after_each_other_are_waited_for_the_next_time) {
  HeldAnswers hosts;
  hosts.learn_round_trip();
  hosts.push_and_answer(reverse, 15us);
  EXPECT_EQ(hosts.received(), 21U);
  const std::uint64_t requests = hosts.requests();
  hosts.push_and_answer(reverse, 15us);
  EXPECT_EQ(hosts.received(), 22U);
  EXPECT_EQ(hosts.requests() - requests, 1U);
}

/// The receiver has given up meanwhile. It would take late fragments for a new message, and could deliver it twice.
TEST(FragmentAnswersTest, requests_that_have_waited_while_the_sender_stood_still_are_not_answered) {
  HeldAnswers hosts;
  SessionRef opened;  // without a session, only two fragments would be worth requests
  {
    const Shepherd inside(hosts.pair[1].monitor());
    opened = *hosts.b.fragment->open(*hosts.b.sink, hosts.pair.to(0));
  }
  hosts.push(3, [](unsigned at) { return at != 1; });
  hosts.pair[0].pause(10min);
  hosts.pair.world.run_for(20min);
  EXPECT_EQ(hosts.requests(), 20U);
  EXPECT_EQ(hosts.sent_again(), 0U);
  EXPECT_EQ(hosts.received(), 0U);
}

TEST(FragmentAnswersTest, a_request_that_has_waited_while_the_sender_stood_still_is_measured_as_a_second_at_most) {
  HeldAnswers hosts;
  hosts.pair.world.set_links({.latency = 350ms});
  const auto lose_one = [&hosts] { hosts.push(3, [](unsigned at) { return at != 1; }); };
  lose_one();
  hosts.pair.world.run_for(30s);
  EXPECT_EQ(test::asked<control::RoundTrip>(*hosts.session).smoothed, 700ms);
  lose_one();
  hosts.pair[0].pause(5s);
  hosts.pair.world.run_for(30s);
  const auto time = test::asked<control::RoundTrip>(*hosts.session);
  EXPECT_GT(time.smoothed, 700ms);
  EXPECT_LT(time.smoothed, 1s);
  EXPECT_EQ(time.retransmission_timeout, 1s);
}

}  // namespace
}  // namespace lrpc::netrpc
