// PSYNC: members restart, and packets of their earlier lives arrive late.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "length.h"
#include "talking_group.h"

namespace lrpc::netrpc::psync {
namespace {

using namespace std::chrono_literals;

/// All members but the last one run PSYNC; the last one is a puppet.
struct Lives : Group {
  explicit Lives(PsyncOptions options = {}, std::size_t count = 2) : Group(count, {}, options, 1), last(count - 1) {
    for (std::size_t i = 0; i < last; ++i) members[i].talker->expects = Expects::nothing;
  }
  [[nodiscard]] Mark of(BootId life, std::uint32_t sequence) { return {net.address(last), life, sequence}; }
  /// Sends the puppet's message; a second time, because its life may have to be asked for first.
  void say(std::uint32_t sequence) {
    for (int times = 0; times < 2; ++times) push(puppet, Type::message, of(puppet.life, sequence));
  }
  [[nodiscard]] int received() { return members[0].talker->received; }
  /// Says the last message that a life can have. All up to `gone` are gone, and those between are lost.
  void say_the_last(std::uint32_t gone) {
    introduce(puppet);
    net.world.run_for(20ms);
    tell_pushed(puppet, kLast);
    push(puppet, Type::gone, of(puppet.life, 0), {of(puppet.life, gone)});
    say(kLast);
  }
  static constexpr std::uint32_t kLast = ~std::uint32_t{0};

  const std::size_t last;
  Puppet& puppet = Group::puppet(last);
};

TEST(PsyncLives, a_late_packet_of_a_life_before_changes_nothing) {
  for (const Type type : {Type::message, Type::status, Type::request, Type::gone}) {
    SCOPED_TRACE(static_cast<int>(type));
    Lives lives;
    lives.puppet.life = 2;
    lives.say(1);
    ASSERT_EQ(lives.received(), 1);
    lives.net.world.run_for(20ms);
    const std::uint32_t sequence = type == Type::message ? 2 : 0;
    lives.push(lives.puppet, type, lives.of(1, sequence), {lives.of(1, 5), lives.of(2, 5)});
    EXPECT_EQ(lives.received(), 1);
    lives.say(2);
    EXPECT_EQ(lives.received(), 2) << "its present life goes on";
    EXPECT_EQ(lives.statistics(0).failed, 0U);
    const std::size_t questions = lives.puppet.questions;
    for (int times = 0; times < 100; ++times) lives.push(lives.puppet, type, lives.of(1, sequence));
    EXPECT_EQ(lives.puppet.questions, questions) << "that life is known to be over";
  }
}

TEST(PsyncLives, a_conversation_that_is_opened_again_in_one_life_of_the_host_begins_anew) {
  Group group(2);
  for (auto& one : group.members) one.talker->expects = Expects::nothing;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(1s);
  group.open_again(0);
  ASSERT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(1s);
  EXPECT_EQ(group.members[1].talker->received, 4);
  EXPECT_EQ(group.statistics(0).state, 0U) << "all have it: nothing is kept";
}

/// Sequence numbers do not wrap around.
TEST(PsyncLives, a_life_whose_numbers_are_used_up_ends_when_the_conversation_is_opened_again) {
  PsyncOptions options;
  options.last_sequence = 3;
  Group group(2, {}, options);
  for (auto& one : group.members) one.talker->expects = Expects::nothing;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(1s);
  EXPECT_EQ(group.push(0), Errc::limit_reached) << "although all have all messages";
  group.open_again(0);
  EXPECT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(1s);
  EXPECT_EQ(group.members[1].talker->received, 4);
  EXPECT_EQ(group.statistics(0).state, 0U);
}

/// The two messages before the last one that a life can have are lost.
TEST(PsyncLives, what_is_missing_before_the_last_number_of_a_life_is_asked_for) {
  constexpr std::uint32_t kLast = Lives::kLast;
  Lives lives;
  lives.say_the_last(kLast - 3);
  lives.net.world.run_for(100ms);
  const std::vector<Mark> lost{lives.of(lives.puppet.life, kLast - 2), lives.of(lives.puppet.life, kLast - 1)};
  EXPECT_EQ(lives.puppet.wanted, lost);
  lives.puppet.wanted.clear();
  for (const Mark& one : lost) lives.push(lives.puppet, Type::message, one);
  EXPECT_EQ(lives.received(), 3);
  lives.net.world.run_for(1s);
  EXPECT_EQ(lives.puppet.wanted, std::vector<Mark>{}) << "no message follows";
}

/// What is kept here follows the last message that a life can have, and that life ends.
TEST(PsyncLives, a_life_may_end_with_its_last_number) {
  Lives lives;
  lives.say_the_last(Lives::kLast - 1);
  ASSERT_EQ(lives.received(), 1);
  ASSERT_EQ(lives.push(0), Errc::ok);
  lives.net.world.run_for(100ms);
  ASSERT_EQ(lives.statistics(0).state, 1U) << "the puppet does not say that it has the message";
  ++lives.puppet.life;
  for (int times = 0; times < 2; ++times) lives.introduce(lives.puppet);
  lives.say(1);
  EXPECT_EQ(lives.received(), 2);
}

TEST(PsyncLives, a_life_that_was_never_heard_of_is_asked_for_before_it_is_believed_in) {
  Lives lives;
  lives.puppet.answers = false;
  lives.say(1);
  EXPECT_EQ(lives.received(), 0);
  EXPECT_EQ(lives.puppet.questions, 1U);
  lives.puppet.answers = true;
  lives.net.world.run_for(20ms);
  lives.say(1);
  EXPECT_EQ(lives.received(), 1);
}

TEST(PsyncLives, a_member_that_begins_again_is_believed_when_it_says_so) {
  Lives lives;
  lives.say(1);
  lives.say(2);
  EXPECT_EQ(lives.received(), 2);
  lives.net.world.run_for(20ms);
  const BootId before = lives.puppet.life++;
  lives.puppet.answers = false;
  lives.say(1);
  EXPECT_EQ(lives.received(), 2);
  lives.push(lives.puppet, Type::message, lives.of(before, 3));
  EXPECT_EQ(lives.received(), 3) << "until then its life before goes on";
  lives.net.world.run_for(20ms);
  lives.puppet.answers = true;
  lives.say(1);
  EXPECT_EQ(lives.received(), 4);
  lives.push(lives.puppet, Type::message, lives.of(before, 4));
  EXPECT_EQ(lives.received(), 4);
}

TEST(PsyncLives, an_answer_to_another_question_is_not_believed) {
  Lives lives;
  lives.puppet.answers = false;
  lives.say(1);
  ASSERT_EQ(lives.puppet.questions, 1U);
  const std::uint32_t number = lives.puppet.number;
  for (const std::uint32_t wrong : {0U, number + 1, number - 1, ~number}) {
    lives.push(lives.puppet, Type::status, lives.of(lives.puppet.life, wrong));
    lives.say(1);
  }
  EXPECT_EQ(lives.received(), 0);
  lives.push(lives.puppet, Type::status, lives.of(lives.puppet.life, number));
  lives.say(1);
  EXPECT_EQ(lives.received(), 1);
}

TEST(PsyncLives, whoever_sends_many_lives_causes_few_questions) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  Lives lives({.window = 64, .interval = 20ms, .silence = 5s});
  lives.puppet.answers = false;
  for (int i = 0; i < 1000; ++i)
    lives.push(lives.puppet, Type::message, lives.of(static_cast<BootId>(random() | 1U), 1));
  EXPECT_GE(lives.puppet.questions, 50U);
  EXPECT_LE(lives.puppet.questions, 101U) << "one each half interval";
  EXPECT_EQ(lives.received(), 0);
  lives.puppet.answers = true;
  lives.net.world.run_for(20ms);
  lives.say(1);
  EXPECT_EQ(lives.received(), 1);
}

/// A host that starts late cannot ask a member that has crashed, so it believes the other members.
TEST(PsyncLives, others_are_believed_of_a_member_that_was_never_heard_and_is_silent) {
  Group group(3, {}, {.window = 64, .interval = 5ms, .silence = 100ms}, 2);
  group.members[0].talker->expects = Expects::nothing;
  Puppet& other = group.puppet(1);
  group.introduce(other);
  const Mark of_silent{group.net.address(2), 9, 1};
  const Mark follows{group.net.address(1), other.life, 1};
  const auto tell = [&](int times) {
    for (int i = 0; i < times; ++i) {
      group.push(other, Type::status, {other.host().address(), other.life, 0}, {of_silent, follows});
      group.push(other, Type::gone, {other.host().address(), other.life, 0}, {of_silent});
    }
  };
  group.push(other, Type::message, follows, {of_silent});
  tell(10);
  EXPECT_EQ(group.members[0].talker->received, 0) << "it may answer yet";
  tell(100);
  EXPECT_EQ(group.members[0].talker->received, 1);
  Puppet& silent = group.puppet(2);
  silent.life = 10;
  group.introduce(silent);
  group.push(silent, Type::message, {of_silent.host, 10, 1});
  EXPECT_EQ(group.members[0].talker->received, 2) << "what it says itself counts";
}

TEST(PsyncLives, what_follows_a_life_that_is_over_waits_for_what_preceded_that) {
  Group group(4, {}, {}, 3);
  Talker& talker = *group.members[0].talker;
  talker.expects = Expects::nothing;
  Puppet& other = group.puppet(1);
  Puppet& again = group.puppet(2);
  Puppet& third = group.puppet(3);
  for (Puppet* const one : {&other, &again, &third}) group.introduce(*one);
  group.net.world.run_for(20ms);
  const Mark follows{other.host().address(), other.life, 1};
  const Mark precedes{third.host().address(), third.life, 1};
  group.push(other, Type::message, follows, {{again.host().address(), 6, 4}});
  EXPECT_EQ(talker.received, 0) << "what preceded the message of life 6 is not known";
  group.push(other, Type::message, follows, {{again.host().address(), 7, 0}, precedes});
  EXPECT_EQ(talker.received, 0);
  group.push(third, Type::message, precedes);
  EXPECT_EQ(talker.received, 2);
}

/// Member 0's copy of the puppet's message names all that member 0 no longer keeps, its own message among that. The
/// puppet's copy does not, and whoever gets that one may get member 0's message later.
TEST(PsyncLives, what_only_a_changed_context_names_is_named_by_the_next_message) {
  Group group(4, {}, {}, 2);
  for (const std::size_t host : {0U, 1U}) group.members[host].talker->expects = Expects::nothing;
  Puppet& other = group.puppet(2);
  Puppet& again = group.puppet(3);
  for (Puppet* const one : {&other, &again}) group.introduce(*one);
  ASSERT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(100ms);
  ASSERT_EQ(group.members[1].talker->received, 1);
  const Mark first{group.net.address(0), group.net[0].host().boot_id(), 1};
  for (Puppet* const one : {&other, &again})
    group.push(*one, Type::status, {one->host().address(), one->life, 0}, {first});
  ASSERT_EQ(group.statistics(0).state, 0U) << "all have it";

  group.net.world.set_group(group.net[1], 1);
  const Mark ended{again.host().address(), again.life++, 1};
  group.push(again, Type::message, ended);
  group.push(other, Type::message, {other.host().address(), other.life, 1}, {ended});
  group.net.world.run_for(20ms);
  for (int times = 0; times < 2; ++times) group.introduce(again);  // the second time, it has answered
  group.net.world.heal();
  group.net.world.run_for(100ms);
  ASSERT_EQ(group.members[1].talker->received, 2) << "member 0 has passed it on";
  ASSERT_EQ(group.push(1), Errc::ok);
  const Shepherd inside(group.net[1].monitor());
  const auto next = test::asked<control::Context>(*group.members[1].session);
  EXPECT_EQ(std::ranges::count(std::span(next.before).first(next.count), first), 1);
}

TEST(PsyncLives, what_follows_a_life_that_is_over_does_not_wait_for_ever) {
  Group group(3, {}, {}, 2);
  group.members[0].talker->expects = Expects::nothing;
  Puppet& other = group.puppet(1);
  Puppet& again = group.puppet(2);
  group.introduce(other);
  group.introduce(again);
  group.net.world.run_for(20ms);
  group.push(other, Type::message, {other.host().address(), other.life, 1}, {{again.host().address(), 6, 4}});
  EXPECT_EQ(group.members[0].talker->received, 0);
  group.net.world.run_for(6s);
  EXPECT_EQ(group.members[0].talker->received, 1);
}

/// The member may have sent the message again before it restarted.
TEST(PsyncLives, who_sends_a_message_again_is_not_known_to_have_it) {
  Lives lives({}, 3);
  lives.introduce(lives.puppet);
  ASSERT_EQ(lives.push(1), Errc::ok);
  lives.net.world.run_for(50ms);
  EXPECT_EQ(lives.received(), 1);
  EXPECT_EQ(lives.statistics(0).state, 1U);
  const Mark message{lives.net.address(1), lives.net[1].host().boot_id(), 1};
  lives.push(lives.puppet, Type::message, message);
  EXPECT_EQ(lives.statistics(0).state, 1U);
  lives.push(lives.puppet, Type::status, lives.of(lives.puppet.life, 0), {message});
  EXPECT_EQ(lives.statistics(0).state, 0U);
}

/// The member has mentioned a message that no other member has, and then crashes.
TEST(PsyncLives, a_member_that_is_gone_is_asked_rarely_for_what_only_it_has) {
  Lives lives({.window = 64, .interval = 20ms, .silence = 1s});
  lives.say(2);
  EXPECT_EQ(lives.received(), 0) << "it follows the first one";
  lives.net.world.run_for(3s);
  const std::uint64_t before = lives.statistics(0).sent;
  lives.net.world.run_for(60s);
  const std::uint64_t sent = lives.statistics(0).sent - before;
  EXPECT_GT(sent, 0U) << "it may have been cut off only, and has it yet";
  EXPECT_LE(sent, 130U) << "a question and a request each second";
  lives.say(1);
  EXPECT_EQ(lives.received(), 2);
}

/// One member has heard of the life between the crashes, and the others cannot ask that member.
TEST(PsyncLives, nobody_waits_for_ever_for_a_member_that_crashes_again_at_once) {
  Group group(3, {}, {.window = 64, .interval = 20ms, .silence = 300ms});
  for (Group::Member& one : group.members) one.talker->expects = Expects::order;
  EXPECT_EQ(group.push(2), Errc::ok);
  group.net.world.run_for(1s);
  group.net.world.set_group(group.net[1], 1);
  group.crash(2);
  group.net[2].boot();
  group.members[2].talker->expects = Expects::order;
  EXPECT_EQ(group.push(2), Errc::ok);
  group.net.world.run_for(100ms);
  EXPECT_EQ(group.members[0].talker->seen[2], 2);
  group.crash(2);
  group.net.world.heal();
  EXPECT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(10s);
  EXPECT_EQ(group.members[1].talker->seen[0], 1);
  EXPECT_EQ(group.statistics(0).state, 0U);
}

/// Crashes at any time, with any messages in transit.
TEST(PsyncLives, order_holds_when_members_crash_amid_traffic) {
  std::mt19937_64 seeds(testing_lrpc::test_seed());
  for (int round = 0; round < testing_lrpc::rounds(30) && !testing::Test::HasFailure(); ++round) {
    std::mt19937_64 random(seeds());
    const SimOptions options{.seed = random(), .link = {.loss = 0.1, .reorder = 0.3}, .routers = {}};
    Group group(4, options, {.window = 64, .interval = 20ms, .silence = 300ms});
    const auto boot = [&](std::size_t host) {
      if (group.net[host].up()) return;
      group.net[host].boot();
      group.members[host].talker->expects = Expects::order;
    };
    for (Group::Member& one : group.members) one.talker->expects = Expects::order;
    for (int i = 0; i < 200; ++i) {
      const std::size_t host = random() % 4;
      if (random() % 20 == 0) {
        group.net[host].up() ? group.crash(host) : boot(host);
      } else if (group.net[host].up()) {
        (void)group.push(host);
      }
      group.net.world.run_for(Duration(random() % 3'000'000));
    }
    for (std::size_t i = 0; i < 4; ++i) boot(i);
    group.net.world.run_for(10s);
    group.net.world.set_links({});
    std::array<std::vector<int>, 4> before;
    for (int times = 0; times < 2; ++times) {  // the first push may be discarded before it is asked for
      for (std::size_t i = 0; i < 4; ++i) before[i] = group.members[i].talker->seen;
      for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(group.push(i), Errc::ok);
      group.net.world.run_for(10s);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(group.statistics(i).state, 0U) << i;
      for (std::size_t j = 0; j < 4; ++j) EXPECT_GT(group.members[i].talker->seen[j], before[i][j]) << i << " of " << j;
    }
  }
}

TEST(PsyncLives, messages_of_a_life_before_that_are_late_do_not_cut_a_member_off) {
  Group group(2);
  EXPECT_EQ(group.push(1), Errc::ok);
  group.net.world.run_for(1s);
  EXPECT_EQ(group.members[0].talker->received, 1);
  group.net.world.set_links({.latency = 1s});
  EXPECT_EQ(group.push(1), Errc::ok);
  group.net.world.run_for(1ms);
  group.net.world.set_links({});
  for (const std::size_t host : {0U, 1U}) {
    group.crash(host);
    group.net[host].boot();
  }
  EXPECT_EQ(group.push(1), Errc::ok);
  group.net.world.run_for(100ms);
  EXPECT_EQ(group.members[0].talker->received, 1);
  group.net.world.run_for(2s);
  EXPECT_EQ(group.push(1), Errc::ok);
  group.net.world.run_for(100ms);
  EXPECT_EQ(group.members[0].talker->received, 2);
}

}  // namespace
}  // namespace lrpc::netrpc::psync
