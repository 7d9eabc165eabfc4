// Replies that are too long for the path back to the caller, and retransmissions over a link whose MTU has shrunk.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "netrpc/composite/test/several.h"
#include "transparent_layer.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

/// Carries messages up to a maximum length, and drops all if `loses`.
class NarrowWay final : public TransparentProtocol {
 public:
  NarrowWay(Host& host, Protocol& below) : TransparentProtocol(host, "narrow", below) {}
  [[nodiscard]] Errc pass_push(TransparentSession& session, Message message) noexcept override {
    if (message.size() > maximum) return Errc::message_too_long;
    return loses ? Errc::ok : TransparentProtocol::pass_push(session, std::move(message));
  }
  std::size_t maximum = 1400;
  bool loses = false;
};

/// A client and servers on narrow paths. An answer is longer than its request, because the server's address precedes
/// it.
struct Narrow {
  using Kinds = std::vector<Part>;
  Narrow(std::size_t count, MicroKind (*accept)(), const Kinds& more = {}, std::uint64_t seed = 1,
         std::size_t threads = 0)
      : group(
            count,
            [accept, more] {
              Kinds parts{part(grpc_kind()), part(sync_kind()), part(accept()), part(number_kind())};
              parts.insert(parts.end(), more.begin(), more.end());
              return parts;
            },
            options(seed), threads,
            [this](SimHost& host) -> Protocol& {
              NarrowWay& way = host.add<NarrowWay>(host.ip());
              ways[host.address().value - kFirst] = &way;
              return way;
            }) {}
  [[nodiscard]] static SimOptions options(std::uint64_t seed) {
    SimOptions made;
    made.seed = seed;
    return made;
  }
  [[nodiscard]] static Kinds acknowledged() {
    return {part(unique_kind()), part(fifo_kind()), part(ack_kind(), {{"interval", "50ms"}})};
  }
  void call(const std::string& text, GroupOutcome& one, Duration how_long = 10ms) {
    group.call(text, one);
    group.run(how_long);
  }

  static constexpr std::uint32_t kFirst = 0x0a000001;
  std::map<std::size_t, NarrowWay*> ways{};  ///< Declared before `group`, which fills it.
  Several group;
};

const std::string kLong(1000, 'x');

TEST(LostReplies, end_a_call_to_one_server_at_once) {
  Narrow one(1, one_accept_kind);
  one.ways[1]->maximum = 500;
  GroupOutcome lost;
  one.call(kLong, lost);
  EXPECT_EQ(lost.outcome, Errc::call_lost);
  EXPECT_EQ(lost.completions, 1);
  EXPECT_EQ(one.group.servers[1]->executed.size(), 1U);
  GroupOutcome next;
  one.call("short", next);
  EXPECT_EQ(next.reply, "10.0.0.2: short");
  for (std::size_t i = 0; i <= 1; ++i) EXPECT_EQ(one.group.state(i), 0U);
}

TEST(LostReplies, let_one_accept_go_on_with_another_member) {
  Narrow three(3, one_accept_kind);
  three.ways[1]->maximum = three.ways[3]->maximum = 500;
  three.group.servers[2]->keeps = true;
  GroupOutcome call;
  three.call(kLong, call);
  EXPECT_FALSE(call.done());
  three.group.answer(2);
  three.group.run();
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(call.reply, "10.0.0.3: " + kLong);
  EXPECT_EQ(call.said["10.0.0.2"], failure(Errc::call_lost));
}

TEST(LostReplies, are_told_with_those_of_the_other_members) {
  Narrow three(3, all_accept_kind);
  three.ways[2]->maximum = 500;
  GroupOutcome call;
  three.call(kLong, call);
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(call.said, (std::map<std::string, std::string>{{"10.0.0.2", "10.0.0.2: " + kLong},
                                                           {"10.0.0.3", failure(Errc::call_lost)},
                                                           {"10.0.0.4", "10.0.0.4: " + kLong}}));
}

TEST(LostReplies, of_all_who_have_failed_are_why_the_call_fails) {
  for (const bool crashed : {false, true}) {
    Narrow three(3, majority_kind, Narrow::acknowledged());
    three.ways[1]->maximum = three.ways[2]->maximum = 500;
    if (crashed) three.group.net[1].crash();
    GroupOutcome call;
    three.call(kLong, call, 10s);
    EXPECT_EQ(call.completions, 1);
    EXPECT_EQ(call.outcome, crashed ? Errc::call_failed : Errc::call_lost);
  }
}

/// The notice of a lost reply takes the number of that reply, in whatever order the handlers run.
TEST(LostReplies, hold_no_reply_up_that_comes_after_them) {
  for (const std::size_t threads : {0U, 2U}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Narrow one(1, one_accept_kind, Narrow::acknowledged(), seed, threads);
      one.ways[1]->maximum = 500;
      GroupOutcome lost;
      one.call(kLong, lost);
      EXPECT_EQ(lost.outcome, Errc::call_lost) << "seed " << seed << ", " << threads << " threads";
      GroupOutcome next;
      one.call("short", next);
      EXPECT_EQ(next.reply, "10.0.0.2: short") << "seed " << seed << ", " << threads << " threads";
    }
  }
}

TEST(LostReplies, are_told_although_the_word_is_lost_the_first_time) {
  Narrow one(1, one_accept_kind, Narrow::acknowledged());
  one.group.servers[1]->keeps = true;
  GroupOutcome call;
  one.call(kLong, call);
  one.ways[1]->maximum = 500;
  one.ways[1]->loses = true;
  one.group.answer(1);
  one.group.run(10ms);
  one.ways[1]->loses = false;
  EXPECT_FALSE(call.done());
  one.group.run(1s);
  EXPECT_EQ(call.outcome, Errc::call_lost);
}

TEST(LostReplies, are_told_when_a_link_has_shrunk_before_they_are_sent_again) {
  Narrow one(1, one_accept_kind, Narrow::acknowledged());
  one.group.servers[1]->keeps = true;
  GroupOutcome call;
  one.call(kLong, call);
  one.ways[1]->loses = true;
  one.group.answer(1);
  one.group.run(10ms);
  one.ways[1]->loses = false;
  one.ways[1]->maximum = 500;
  one.group.run(100ms);
  EXPECT_EQ(call.outcome, Errc::call_lost);
  EXPECT_EQ(one.group.servers[1]->executed.size(), 1U);
  one.group.run(10s);
  EXPECT_EQ(one.group.layers[1]->events().timers(), 0U);
}

TEST(LostReplies, and_requests_that_cannot_be_sent_again_end_the_call) {
  Narrow one(1, one_accept_kind, Narrow::acknowledged());
  one.ways[0]->loses = true;
  GroupOutcome call;
  one.call(kLong, call);
  one.ways[0]->loses = false;
  one.ways[0]->maximum = 500;
  one.group.run(100ms);
  EXPECT_EQ(call.outcome, Errc::call_lost);
  EXPECT_EQ(call.completions, 1);
  one.group.run(10s);
  EXPECT_EQ(one.group.layers[0]->events().timers(), 0U);
  EXPECT_EQ(one.group.state(0), 0U);
}

TEST(LostReplies, of_requests_that_are_executed_for_good_are_told_once) {
  Narrow one(1, one_accept_kind, {part(atomic_kind())});
  one.ways[1]->maximum = 500;
  GroupOutcome lost;
  one.call(kLong, lost);
  EXPECT_EQ(lost.outcome, Errc::call_lost);
  EXPECT_EQ(one.group.servers[1]->committed, 1);
  EXPECT_EQ(one.group.servers[1]->rolled_back, 0);
}

}  // namespace
}  // namespace lrpc::netrpc::composite
