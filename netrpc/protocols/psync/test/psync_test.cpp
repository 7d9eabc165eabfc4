// PSYNC: each host receives a message after everything that its sender knew.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "length.h"
#include "lrpc/netrpc/all_kinds.h"
#include "lrpc/netrpc/session_cache.h"
#include "talking_group.h"

namespace lrpc::netrpc::psync {
namespace {

using namespace std::chrono_literals;

TEST(Psync, messages_reach_all_other_members) {
  Group group(3);
  EXPECT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(1ms);
  EXPECT_EQ(group.members[1].talker->received, 1);
  EXPECT_EQ(group.members[2].talker->received, 1);
  EXPECT_EQ(group.members[0].talker->received, 0);
  EXPECT_EQ(group.statistics(0).state, 1U);  // kept until it knows that all members have it
  group.net.world.run_for(1s);
  group.expect_all_have({1, 0, 0});
}

TEST(Psync, who_is_no_member_takes_no_part) {
  Group group(2);
  const Shepherd inside(group.net[0].monitor());
  Talker& talker = *group.members[0].talker;
  ParticipantSet participants = Group::to_group();
  participants.remote.host.value += 1;
  EXPECT_EQ(group.members[0].protocol->open(talker, participants).code(), Errc::invalid_argument);
  EXPECT_TRUE(group.net[0].host().groups().set(participants.remote.host, {group.net.address(1)}));
  const auto no_member = group.members[0].protocol->open(talker, participants);
  EXPECT_NE(no_member.error().text.find("does not have this host as a member"), std::string::npos);
  std::vector<HostAddress> many;
  for (std::uint32_t i = 0; i < 17; ++i) many.push_back({0x0a000001 + i});
  EXPECT_TRUE(group.net[0].host().groups().set(participants.remote.host, many));
  EXPECT_EQ(group.members[0].protocol->open(talker, participants).code(), Errc::invalid_argument);
}

TEST(Psync, refuses_more_than_a_window_that_not_all_have) {
  Group group(2, {}, {.window = 4, .interval = 20ms, .silence = 1s});
  group.crash(1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(group.push(0), Errc::ok);
  EXPECT_EQ(group.push(0), Errc::limit_reached);
  group.net.world.run_for(2s);  // silent members are not waited for
  EXPECT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(2s);
  EXPECT_EQ(group.statistics(0).state, 0U);
}

TEST(Psync, order_holds_on_wires_that_lose_duplicate_and_reorder) {
  std::mt19937_64 seeds(testing_lrpc::test_seed());
  for (int round = 0; round < testing_lrpc::rounds(20) && !testing::Test::HasFailure(); ++round) {
    std::mt19937_64 random(seeds());
    const auto rate = [&](double most) { return most * static_cast<double>(random() % 100) / 100; };
    const SimOptions options{
        .seed = random(), .link = {.loss = rate(0.3), .duplicate = rate(0.2), .reorder = rate(0.5)}, .routers = {}};
    const std::size_t count = 2 + random() % 5;
    Group group(count, options);
    std::vector<int> pushed(count);
    for (Group::Member& one : group.members) one.talker->answers = random() % 2 == 0;
    for (int i = 0; i < 200; ++i) {
      (void)group.push(random() % count);
      group.net.world.run_for(Duration(random() % 3'000'000));
    }
    group.net.world.run_for(60s);
    for (std::size_t i = 0; i < count; ++i) pushed[i] = group.members[i].talker->seen[i];
    group.expect_all_have(pushed);
    EXPECT_GE(std::accumulate(pushed.begin(), pushed.end(), 0), 100);
  }
}

/// Silence is measured from the time at which a member is waited for.
TEST(Psync, members_that_had_nothing_to_say_are_waited_for) {
  Group group(2, {}, {.window = 64, .interval = 20ms, .silence = 300ms});
  EXPECT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(60s);
  group.net.world.set_links({.loss = 1});
  EXPECT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(200ms);
  group.net.world.set_links({});
  group.net.world.run_for(1s);
  group.expect_all_have({2, 0});
}

TEST(Psync, a_pause_of_a_host_is_no_silence_of_the_others) {
  Group group(2, {}, {.window = 64, .interval = 20ms, .silence = 1s});
  group.net.world.set_links({.loss = 1});
  EXPECT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(50ms);
  group.net[0].pause(10s);
  group.net.world.run_for(5s);
  group.net.world.set_links({});
  group.net.world.run_for(10s);
  group.expect_all_have({1, 0});
}

/// The remaining members go on, with each other's messages in order. A restarted member takes part from then on.
TEST(Psync, members_may_crash_and_begin_again) {
  std::mt19937_64 seeds(testing_lrpc::test_seed());
  for (int round = 0; round < testing_lrpc::rounds(20) && !testing::Test::HasFailure(); ++round) {
    std::mt19937_64 random(seeds());
    const SimOptions options{.seed = random(), .link = {.loss = 0.1, .reorder = 0.3}, .routers = {}};
    Group group(4, options, {.window = 64, .interval = 20ms, .silence = 300ms});
    const auto talk = [&](int messages, std::size_t of) {
      for (int i = 0; i < messages; ++i) {
        (void)group.push(random() % of);
        group.net.world.run_for(Duration(random() % 3'000'000));
      }
      group.net.world.run_for(10s);
    };
    for (Group::Member& one : group.members) one.talker->expects = Expects::order;
    talk(20, 4);
    group.crash(3);
    talk(50, 3);
    const int before = group.members[0].talker->seen[1];
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(group.statistics(i).state, 0U);
      for (std::size_t j = 0; j < 3; ++j)
        EXPECT_EQ(group.members[i].talker->seen[j], group.members[j].talker->seen[j]) << i << j;
    }
    group.net[3].boot();
    group.members[3].talker->expects = Expects::order;
    talk(50, 4);
    EXPECT_GT(group.members[0].talker->seen[1], before);
    EXPECT_GT(group.members[3].talker->seen[1], 0);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(group.statistics(i).state, 0U);
      for (std::size_t j = 0; j < 3; ++j)
        EXPECT_EQ(group.members[i].talker->seen[j], group.members[j].talker->seen[j]) << i << j;
    }
  }
}

/// Pushes at random members while a partition separates the hosts of `one_side` from the others.
void talk_apart(Group& group, std::mt19937_64& random, const std::vector<std::size_t>& one_side, int messages) {
  for (const std::size_t host : one_side) group.net.world.set_group(group.net[host], 1);
  for (int i = 0; i < messages; ++i) {
    (void)group.push(random() % group.members.size());
    group.net.world.run_for(Duration(random() % 3'000'000));
  }
  group.net.world.heal();
}

TEST(Psync, a_partition_shorter_than_the_silence_loses_nothing) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  Group group(4, {.seed = random(), .link = {.loss = 0.1, .reorder = 0.3}, .routers = {}},
              {.window = 64, .interval = 20ms, .silence = 1s});
  for (int round = 0; round < testing_lrpc::rounds(10); ++round) {
    talk_apart(group, random, {random() % 4}, 20);
    group.net.world.run_for(10s);
    EXPECT_GT(group.net.world.counters().cut, 0U);
    group.expect_all_have(group.members[0].talker->seen);
  }
}

/// Both sides go on alone. A side never gets what the other side no longer keeps when they meet again; the rest is in
/// order.
TEST(Psync, order_holds_over_a_partition_that_is_longer_than_the_silence) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  const SimLink bad{.loss = 0.1, .reorder = 0.3};
  Group group(4, {.seed = random(), .link = bad, .routers = {}}, {.window = 64, .interval = 5ms, .silence = 50ms});
  for (Group::Member& one : group.members) one.talker->expects = Expects::order;
  for (int round = 0; round < testing_lrpc::rounds(10); ++round) {
    talk_apart(group, random, {random() % 4, random() % 4}, 100);
    group.net.world.run_for(random() % 2 == 0 ? 10s : 1ms);
    // Members that have been silent are not waited for: their first messages may be discarded before they are asked
    // for.
    group.net.world.set_links({});
    std::vector<int> before;
    for (int times = 0; times < 2; ++times) {
      before = group.members[0].talker->seen;
      for (std::size_t i = 0; i < 4; ++i)
        while (group.push(i) != Errc::ok) group.net.world.run_for(10ms);
      group.net.world.run_for(10s);
    }
    group.net.world.set_links(bad);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_GT(group.members[0].talker->seen[i], before[i]) << "they hear each other again";
      EXPECT_EQ(group.statistics(i).state, 0U);
    }
  }
}

TEST(Psync, stands_on_fragment_in_a_graph) {
  ProtocolKinds kinds = layer_kinds();
  kinds.add(sim_ip_kind("IP"));
  const auto description =
      GraphDescription::parse("ip = IP; fragment = FRAGMENT over ip; psync = PSYNC(window = 8) over fragment;", kinds);
  ASSERT_TRUE(description) << description.error().message();
  SimHosts net(2);
  std::vector<Graph> graphs;
  SinkProtocol* sinks[2];
  SessionRef sessions[2];
  for (std::size_t i = 0; i < 2; ++i) {
    sinks[i] = &net[i].add<SinkProtocol>();
    const Shepherd inside(net[i].monitor());
    EXPECT_TRUE(net[i].host().groups().set(kGroup, {net.address(0), net.address(1)}));
    auto graph = Graph::compose(net[i].host(), *description, kinds);
    ASSERT_TRUE(graph);
    graphs.push_back(std::move(*graph));
    sessions[i] = *graphs.back().find("psync")->open(*sinks[i], Group::to_group());
  }
  const std::string large(10'000, 'x');
  {
    const Shepherd inside(net[0].monitor());
    EXPECT_EQ(sessions[0]->push(Message::copy_of_long(net[0].pool(), std::as_bytes(std::span(large)))), Errc::ok);
  }
  net.world.run_for(1s);
  EXPECT_EQ(sinks[1]->received, std::vector<std::string>{large});
  {
    const Shepherd inside(net[0].monitor());
    const std::string too_large(30'000, 'x');
    EXPECT_EQ(sessions[0]->push(Message::copy_of_long(net[0].pool(), std::as_bytes(std::span(too_large)))),
              Errc::message_too_long);
    EXPECT_EQ(sessions[0]->push(net.message(0, "and on")), Errc::ok);
  }
  net.world.run_for(1s);
  EXPECT_EQ(sinks[1]->received, (std::vector<std::string>{large, "and on"}));
  for (SessionRef& one : sessions) one = {};
  graphs.clear();
}

/// Host 2 lacks a message when the links of both others shrink. What follows that message is short.
TEST(Psync, a_message_that_links_carry_no_more_is_lost_alone) {
  Group group(3, {}, {}, 0, Medium::ethernet);
  Talker& late = *group.members[2].talker;
  ASSERT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(1s);
  ASSERT_EQ(late.received, 1);
  late.expects = Expects::order;
  group.net.world.set_group(group.net[2], 1);
  group.members[0].talker->padding = 1000;
  ASSERT_EQ(group.push(0), Errc::ok);
  group.members[0].talker->padding = 0;
  group.net.world.run_for(10ms);
  ASSERT_EQ(group.push(1), Errc::ok);
  group.net.world.run_for(10ms);
  for (std::size_t i = 0; i < 2; ++i) static_cast<SimEthernet&>(group.net[i].ethernet()).set_mtu(600);
  group.net.world.heal();
  group.net.world.run_for(1s);
  ASSERT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(1s);
  EXPECT_EQ(late.received, 3);
  EXPECT_EQ(group.statistics(2).failed, 1U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(group.statistics(i).state, 0U) << i;
}

/// Host 1 lacks a message that the links carry no more. Whoever asks host 1 for it skips all that it lacks up to there.
TEST(Psync, a_message_that_links_carry_no_more_is_given_up_only_when_no_member_lacks_more) {
  Group group(3, {}, {}, 2, Medium::ethernet);
  Puppet* const puppets[] = {&group.puppet(1), &group.puppet(2)};
  for (Puppet* const one : puppets) group.introduce(*one);
  ASSERT_EQ(group.push(0), Errc::ok);
  group.members[0].talker->padding = 1000;
  ASSERT_EQ(group.push(0), Errc::ok);
  static_cast<SimEthernet&>(group.net[0].ethernet()).set_mtu(600);
  control::Context last;
  ASSERT_EQ(control::ask(*group.members[0].session, last), Errc::ok);
  const auto name = [](const Puppet& one) { return Mark{one.host().address(), one.life, 0}; };
  for (Puppet* const one : puppets) {
    EXPECT_TRUE(puppets[0]->gone.empty());
    group.push(*one, Type::status, name(*one), {{last.message.host, last.message.life, 1}});
    group.push(*puppets[0], Type::request, name(*puppets[0]), {last.message});
  }
  EXPECT_NE(std::ranges::find(puppets[0]->gone, last.message), puppets[0]->gone.end());
}

/// Host 1 has seen j -> p -> k -> n, each from another member. Host 0 has p, which names j, and n, which names k. From
/// these alone no host can tell that p precedes n.
TEST(Psync, messages_that_wait_for_lost_ones_are_lost_with_them) {
  Group group(5, {}, {}, 4);
  Talker& talker = *group.members[0].talker;
  talker.expects = Expects::nothing;
  std::vector<Puppet*> puppets;
  for (std::size_t i = 1; i < 5; ++i) group.introduce(*puppets.emplace_back(&group.puppet(i)));
  const auto name = [&](std::size_t host, std::uint32_t sequence) {
    return Mark{group.net.address(host), 7, sequence};
  };
  const auto send = [&](Type type, const Mark& id, const std::vector<Mark>& marks) {
    group.push(*puppets.front(), type, id, marks);
  };
  send(Type::message, name(2, 1), {});
  send(Type::message, name(4, 1), {});
  send(Type::message, name(1, 1), {name(4, 2)});  // p
  send(Type::message, name(3, 1), {name(2, 2)});  // n
  EXPECT_EQ(talker.received, 2);
  group.tell_pushed(*puppets[1], 2);
  group.tell_pushed(*puppets[3], 2);
  send(Type::gone, name(1, 0), {name(1, 1), name(2, 2), name(3, 1), name(4, 2)});
  EXPECT_EQ(talker.received, 2);
  EXPECT_EQ(group.statistics(0).failed, 4U);
  send(Type::message, name(1, 2), {name(1, 1)});
  EXPECT_EQ(talker.received, 3);
}

/// Host 0 has received the first message of host 1 and skips the next ones. Its next message names the last of them.
TEST(Psync, what_was_given_before_some_were_skipped_precedes_what_is_pushed_then) {
  Group group(3, {}, {}, 2);
  group.members[0].talker->expects = Expects::nothing;
  Puppet& one = group.puppet(1);
  Puppet& other = group.puppet(2);
  group.introduce(one);
  group.introduce(other);
  const auto of_one = [&](std::uint32_t sequence) { return Mark{one.host().address(), one.life, sequence}; };
  group.push(one, Type::message, of_one(1));
  group.tell_pushed(one, 3);
  group.push(other, Type::gone, {other.host().address(), other.life, 0}, {of_one(3)});
  ASSERT_EQ(group.push(0), Errc::ok);
  control::Context last;
  ASSERT_EQ(control::ask(*group.members[0].session, last), Errc::ok);
  const std::span<const Mark> context = std::span(last.before).first(last.count);
  EXPECT_NE(std::ranges::find(context, of_one(3)), context.end());
}

/// Host 0 keeps messages of host 1 that precede what it has skipped. A member that skips the same later must not get
/// them.
TEST(Psync, what_precedes_skipped_messages_is_skipped_with_them) {
  Group group(4, {}, {}, 3);
  group.members[0].talker->expects = Expects::nothing;
  std::vector<Puppet*> puppets;
  for (std::size_t i = 1; i < 4; ++i) group.introduce(*puppets.emplace_back(&group.puppet(i)));
  const auto name = [&](std::size_t host, std::uint32_t sequence) {
    return Mark{group.net.address(host), 7, sequence};
  };
  for (const std::uint32_t sequence : {1U, 2U}) group.push(*puppets[0], Type::message, name(1, sequence));
  EXPECT_EQ(group.members[0].talker->received, 2);
  group.tell_pushed(*puppets[1], 5);
  group.push(*puppets[1], Type::gone, name(2, 0), {name(1, 2), name(2, 5)});
  group.push(*puppets[2], Type::request, name(3, 0), {name(2, 5)});
  const std::vector<Mark>& told = puppets[2]->gone;
  EXPECT_NE(std::ranges::find(told, name(1, 2)), told.end());
  EXPECT_NE(std::ranges::find(told, name(2, 5)), told.end());
}

TEST(Psync, no_more_is_believed_to_be_gone_than_a_member_that_is_heard_has_pushed) {
  Group group(3, {}, {.window = 64, .interval = 20ms, .silence = 1s}, 2);
  Talker& talker = *group.members[0].talker;
  talker.expects = Expects::nothing;
  Puppet& one = group.puppet(1);
  Puppet& other = group.puppet(2);
  group.introduce(one);
  group.introduce(other);
  const auto of_one = [&](std::uint32_t sequence) { return Mark{one.host().address(), one.life, sequence}; };
  const auto gone = [&](std::uint32_t up_to) {
    group.push(other, Type::gone, {other.host().address(), other.life, 0}, {of_one(up_to)});
  };
  group.push(one, Type::message, of_one(1));
  EXPECT_EQ(talker.received, 1);
  gone(1'000'000);
  group.push(other, Type::message, of_one(2'000'000));
  gone(1'000'000);
  group.push(one, Type::message, of_one(2));
  EXPECT_EQ(talker.received, 2);
  EXPECT_EQ(group.statistics(0).failed, 0U);
  group.tell_pushed(one, 1'000);
  gone(1'000);
  group.push(one, Type::message, of_one(1'001));
  EXPECT_EQ(talker.received, 3);
  EXPECT_EQ(group.statistics(0).failed, 998U);
}

/// Random bytes from a member: nothing breaks, and all bounds hold.
TEST(Psync, hostile_packets_do_no_harm) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  Group group(3, {}, {.window = 4, .interval = 20ms, .silence = 1s}, 1);
  for (std::size_t i = 0; i < 2; ++i) group.members[i].talker->expects = Expects::nothing;
  Puppet& hostile = group.puppet(2);
  for (int i = 0; i < 5000; ++i) {
    const auto mark = [&] {
      const auto host = HostAddress{0x0a000001 + static_cast<std::uint32_t>(random() % 4)};
      const BootId life = random() % 3 == 0 ? group.net[0].host().boot_id() : static_cast<BootId>(random() % 3);
      const std::uint32_t sequence = random() % 8 == 0 ? static_cast<std::uint32_t>(random()) : random() % 8U;
      return Mark{host, life, sequence};
    };
    std::vector<Mark> marks;
    for (std::size_t count = random() % 5; count != 0; --count) marks.push_back(mark());
    {
      const Shepherd inside(group.net[2].monitor());
      hostile.life = static_cast<BootId>(1 + random() % 2);
      hostile.push(static_cast<Type>(1 + random() % 4), mark(), marks, random() % 2 == 0);
    }
    if (i % 7 == 0) (void)group.push(static_cast<std::size_t>(i % 2));
    group.net.world.run_for(100us);
    EXPECT_LE(group.statistics(0).state, 3U * 4);
  }
}

}  // namespace
}  // namespace lrpc::netrpc::psync
