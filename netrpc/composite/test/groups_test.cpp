// Group RPC: one call to several servers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/composite/test/several.h"
#include "netrpc/protocols/select/select.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

TEST(Groups, are_checked_when_they_are_set) {
  Groups groups;
  const HostAddress a{1};
  const HostAddress b{2};
  EXPECT_TRUE(groups.members(kGroup).empty());
  EXPECT_TRUE(groups.set(kGroup, {b, a}));
  EXPECT_TRUE(std::ranges::equal(groups.members(kGroup), std::vector{a, b}));
  EXPECT_EQ(groups.set(a, {b}).code(), Errc::invalid_argument);
  EXPECT_EQ(groups.set({0xf0000000}, {b}).code(), Errc::invalid_argument);
  EXPECT_EQ(groups.set(kGroup, {a, b, a}).code(), Errc::invalid_argument);
  EXPECT_EQ(groups.set(kGroup, {{}}).code(), Errc::invalid_argument);
  EXPECT_EQ(groups.set(kGroup, {kGroup}).code(), Errc::invalid_argument);
  std::vector<HostAddress> many;
  for (std::uint32_t i = 1; i <= Groups::kMostMembers; ++i) many.push_back({i});
  EXPECT_TRUE(groups.set(kGroup, many));
  many.push_back({1000});
  EXPECT_EQ(groups.set(kGroup, many).code(), Errc::invalid_argument);
  EXPECT_EQ(groups.members(kGroup).size(), Groups::kMostMembers);
  EXPECT_TRUE(groups.set(kGroup, {}));
  EXPECT_TRUE(groups.members(kGroup).empty());
}

/// The decision of each policy for every tally of up to seven members.
TEST(Groups, policies_decide_once_and_for_all) {
  struct Policy {
    Decision decide;
    std::size_t (*needs)(std::size_t members);
  };
  const Policy policies[] = {{one_accepts, [](std::size_t) -> std::size_t { return 1; }},
                             {majority_accepts, [](std::size_t members) { return members / 2 + 1; }}};
  for (std::size_t members = 1; members <= 7; ++members) {
    for (std::size_t answered = 0; answered <= members; ++answered) {
      for (std::size_t failed = 0; answered + failed <= members; ++failed) {
        const Tally tally{members, answered, failed};
        for (const Policy& policy : policies) {
          const std::size_t needs = policy.needs(members);
          const auto expected = answered >= needs          ? std::optional(Errc::ok)
                                : members - failed < needs ? std::optional(Errc::call_failed)
                                                           : std::nullopt;
          EXPECT_EQ(policy.decide(tally), expected) << members << ", " << answered << ", " << failed;
        }
        const auto all = answered + failed < members ? std::nullopt
                         : answered != 0             ? std::optional(Errc::ok)
                                                     : std::optional(Errc::call_failed);
        EXPECT_EQ(all_accept(tally), all);
      }
    }
  }
}

/// A policy and a number of members.
struct AcceptBy {
  MicroKind (*kind)();
  std::size_t members;
};

PartsOf call_of(MicroKind (*accept)()) {
  return [accept] { return std::vector<Part>{part(grpc_kind()), part(sync_kind()), part(accept())}; };
}
/// The same, and members that do not acknowledge three tries count as failed.
PartsOf reliable(MicroKind (*accept)(), bool membership = false) {
  return [accept, membership] {
    std::vector<Part> parts = call_of(accept)();
    parts.push_back(part(number_kind()));
    parts.push_back(part(unique_kind()));
    parts.push_back(part(ack_kind(), {{"tries", "3"}}));
    if (membership) parts.push_back(part(membership_kind()));
    return parts;
  };
}

TEST(GroupRpc, one_accept_takes_the_first_reply) {
  Several group(3, call_of(one_accept_kind));
  group.servers[1]->keeps = group.servers[2]->keeps = true;
  GroupOutcome one;
  group.call("who?", one);
  group.run();
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.completions, 1);
  EXPECT_EQ(one.reply, "10.0.0.4: who?");
  EXPECT_EQ(one.said, (std::map<std::string, std::string>{{"10.0.0.4", "10.0.0.4: who?"}}));
  EXPECT_EQ(group.state(0), 0U);
  group.answer(1);
  group.run();
  EXPECT_EQ(one.completions, 1);
  for (std::size_t i = 1; i <= 3; ++i) EXPECT_EQ(group.servers[i]->executed, std::vector<std::string>{"who?"});
}

TEST(GroupRpc, all_accept_waits_for_all_and_says_who_said_what) {
  Several group(3, call_of(all_accept_kind));
  group.servers[2]->keeps = true;
  GroupOutcome one;
  group.call("all", one);
  group.run();
  EXPECT_FALSE(one.done());
  group.answer(2);
  group.run();
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_NE(one.reply, "10.0.0.3: all");  // the first answer is the reply
  EXPECT_EQ(one.said,
            (std::map<std::string, std::string>{
                {"10.0.0.2", "10.0.0.2: all"}, {"10.0.0.3", "10.0.0.3: all"}, {"10.0.0.4", "10.0.0.4: all"}}));
  for (std::size_t i = 0; i <= 3; ++i) EXPECT_EQ(group.state(i), 0U);
}

TEST(GroupRpc, majority_does_without_the_rest) {
  Several group(5, call_of(majority_kind));
  for (std::size_t i = 1; i <= 3; ++i) group.servers[i]->keeps = true;
  GroupOutcome one;
  group.call("most", one);
  group.run();
  EXPECT_FALSE(one.done());
  group.answer(3);
  group.run();
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.said.size(), 3U);
  EXPECT_EQ(group.state(0), 0U);
}

TEST(GroupRpc, nobody_waits_for_who_is_found_to_have_failed) {
  Several group(3, reliable(all_accept_kind));
  group.net[2].crash();
  GroupOutcome one;
  group.call("all", one);
  group.run(10s);
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.said, (std::map<std::string, std::string>{{"10.0.0.2", "10.0.0.2: all"},
                                                          {"10.0.0.3", failure(Errc::call_failed)},
                                                          {"10.0.0.4", "10.0.0.4: all"}}));
}

TEST(GroupRpc, fails_when_too_few_are_left) {
  for (const auto& [accept, left] :
       {AcceptBy{one_accept_kind, 0}, AcceptBy{all_accept_kind, 0}, AcceptBy{majority_kind, 2}}) {
    Several group(5, reliable(accept));
    for (std::size_t i = 1; i <= 5 - left; ++i) group.net[i].crash();
    GroupOutcome one;
    group.call("anybody?", one);
    group.run(10s);
    EXPECT_EQ(one.outcome, Errc::call_failed);
    EXPECT_EQ(one.completions, 1);
    EXPECT_EQ(one.said.size(), 5U);
    EXPECT_EQ(group.state(0), 0U);
  }
}

TEST(GroupRpc, members_that_have_failed_are_asked_but_not_waited_for) {
  Several group(3, reliable(all_accept_kind, true));
  GroupOutcome calls[4];
  group.call("before", calls[0]);
  group.run();
  EXPECT_EQ(calls[0].said.size(), 3U);
  group.net[2].crash();
  group.call("finds out", calls[1]);
  group.run(10s);
  ASSERT_TRUE(calls[1].done());
  group.call("knows", calls[2]);
  group.run(10ms);
  ASSERT_TRUE(calls[2].done());
  EXPECT_EQ(calls[2].said["10.0.0.3"], failure(Errc::call_failed));
  group.net[2].boot();
  group.run(1s);  // if an earlier request reaches the member, it rejoins the group
  GroupOutcome again;
  group.call("welcome", again);
  group.run(1s);
  group.call("back", calls[3]);
  group.run(10ms);
  ASSERT_TRUE(calls[3].done());
  EXPECT_EQ(calls[3].said["10.0.0.3"], "10.0.0.3: back");
}

TEST(GroupRpc, when_all_have_failed_all_are_waited_for) {
  Several group(2, reliable(one_accept_kind, true));
  for (std::size_t i = 1; i <= 2; ++i) group.net[i].crash();
  GroupOutcome calls[2];
  group.call("nobody", calls[0]);
  group.run(10s);
  EXPECT_EQ(calls[0].outcome, Errc::call_failed);
  for (std::size_t i = 1; i <= 2; ++i) group.net[i].boot();
  group.call("somebody", calls[1]);
  group.run(1s);
  EXPECT_EQ(calls[1].outcome, Errc::ok);
}

TEST(GroupRpc, ends_by_its_bound_with_what_has_come) {
  Several group(2, [] {
    std::vector<Part> parts = call_of(all_accept_kind)();
    parts.push_back(part(bounded_kind(), {{"limit", "1s"}}));
    return parts;
  });
  group.servers[1]->keeps = true;
  GroupOutcome one;
  group.call("slow", one);
  group.run(2s);
  EXPECT_EQ(one.outcome, Errc::call_aborted);
  EXPECT_EQ(one.said, (std::map<std::string, std::string>{{"10.0.0.3", "10.0.0.3: slow"}}));
  EXPECT_EQ(group.state(0), 0U);
  group.answer(1);
  group.run();
  EXPECT_EQ(one.completions, 1);
  EXPECT_EQ(group.layers[0]->bag().count(), 0U);
}

PartsOf push_of(MicroKind (*accept)()) {
  return [accept] {
    return std::vector<Part>{part(grpc_kind()), part(async_kind()), part(accept()),
                             part(bounded_kind(), {{"limit", "1s"}})};
  };
}

TEST(GroupRpc, in_push_style_replies_come_up_through_who_has_sent_them) {
  for (const auto& [accept, replies] :
       {AcceptBy{one_accept_kind, 1}, AcceptBy{majority_kind, 2}, AcceptBy{all_accept_kind, 3}}) {
    Several group(3, push_of(accept));
    EXPECT_EQ(group.push("push"), Errc::ok);
    GroupOutcome no;
    group.call("no call", no);
    EXPECT_EQ(no.outcome, Errc::not_supported);
    group.run();
    EXPECT_EQ(group.client->received.size(), replies);
    for (std::size_t i = 0; i < group.client->received.size(); ++i)
      EXPECT_EQ(group.client->received[i], to_string(group.client->from[i]) + ": push");
    EXPECT_EQ(group.servers[1]->pushed, Errc::ok);
    EXPECT_EQ(group.servers[1]->pushed_again, Errc::not_supported);
    EXPECT_TRUE(group.client->failed.empty());
    for (std::size_t i = 0; i <= 3; ++i) {
      EXPECT_EQ(group.state(i), 0U);
      EXPECT_EQ(group.layers[i]->events().timers(), 0U);
    }
  }
}

/// The client is told that the push has failed. The reply arrives during that notification.
TEST(GroupRpc, in_push_style_what_has_failed_is_not_answered) {
  Several one(1, [] {
    return std::vector<Part>{part(grpc_kind()), part(async_kind()), part(one_accept_kind()),
                             part(bounded_kind(), {{"limit", "15ms"}})};
  });
  one.net.world.set_links({.latency = 10ms});
  one.client->waits = 20ms;
  EXPECT_EQ(one.push("late"), Errc::ok);
  one.run();
  EXPECT_EQ(one.client->failed, std::vector<Errc>{Errc::call_aborted});
  EXPECT_EQ(one.client->received, std::vector<std::string>{});
  EXPECT_EQ(one.state(0), 0U);
}

TEST(GroupRpc, in_push_style_who_pushes_is_told_that_no_reply_comes) {
  Several group(2, push_of(all_accept_kind));
  group.net[2].crash();
  EXPECT_EQ(group.push("push"), Errc::ok);
  group.run(2s);
  EXPECT_EQ(group.client->failed, std::vector<Errc>{Errc::call_aborted});
  EXPECT_TRUE(group.client->received.empty());
  EXPECT_EQ(group.layers[0]->bag().count(), 0U);
}

TEST(GroupRpc, a_group_that_is_not_known_is_not_opened) {
  Several group(2, call_of(one_accept_kind));
  const Shepherd inside(group.net[0].monitor());
  ParticipantSet participants = Several::to_group();
  ++participants.remote.host.value;
  const auto none = group.layers[0]->open(*group.client, participants);
  EXPECT_EQ(none.code(), Errc::host_unreachable);
  EXPECT_NE(none.error().text.find("knows nobody in the group 239.0.0.2"), std::string::npos) << none.error().text;
}

TEST(GroupRpc, a_session_says_what_all_members_can_take) {
  Several group(2, call_of(one_accept_kind));
  const Shepherd inside(group.net[0].monitor());
  ParticipantSet one = group.net.to(1);
  const SessionRef single = *group.layers[0]->open(*group.client, one);
  EXPECT_EQ(test::asked<control::MaximumMessage>(*group.session).size,
            test::asked<control::MaximumMessage>(*single).size);
  EXPECT_FALSE(test::asked<control::Authenticated>(*group.session).authenticated);
  control::RoundTrip trip;
  EXPECT_EQ(control::ask(*group.session, trip), Errc::not_supported);
  (void)test::asked<control::FreedByCancel>(*group.session);
  EXPECT_EQ(test::asked<control::PeerHost>(*group.session).host, kGroup);
}

TEST(GroupRpc, select_takes_its_header_off_every_reply) {
  Several group(3, reliable(all_accept_kind));
  const auto select = [&](std::size_t host) {
    std::shared_ptr<Protocol> made = make_select(group.net[host].host(), "select", *group.layers[host], {});
    Protocol& protocol = *made;
    group.net[host].own(std::move(made));
    return &protocol;
  };
  for (std::size_t i = 1; i <= 3; ++i) {
    Protocol* const server = select(i);
    ParticipantSet command;
    command.local.command = i < 3 ? 7 : 8;
    const Shepherd inside(group.net[i].monitor());
    EXPECT_TRUE(server->open_enable(*group.servers[i], command));
  }
  GroupOutcome one;
  {
    Protocol* const client = select(0);
    const Shepherd inside(group.net[0].monitor());
    ParticipantSet participants = Several::to_group();
    participants.remote.command = 7;
    const SessionRef session = *client->open(*group.client, participants);
    session->call(group.net.message(0, "seven"), one, kNoLimit);
    group.session = session;
  }
  group.run(1s);
  EXPECT_EQ(one.completions, 1);
  EXPECT_EQ(one.said, (std::map<std::string, std::string>{{"10.0.0.2", "10.0.0.2: seven"},
                                                          {"10.0.0.3", "10.0.0.3: seven"},
                                                          {"10.0.0.4", failure(Errc::bad_procedure)}}));
}

/// A member whose answer does not count has failed; its answer is collated all the same.
TEST(GroupRpc, its_caller_says_what_counts_as_an_answer) {
  struct Case {
    MicroKind (*accept)();
    std::string refused;
    Errc outcome;
  };
  const Case cases[] = {{one_accept_kind, "10.0.0.2", Errc::ok},       {majority_kind, "10.0.0.2", Errc::ok},
                        {all_accept_kind, "10.0.0.2", Errc::ok},       {one_accept_kind, "hello", Errc::call_failed},
                        {all_accept_kind, "hello", Errc::call_failed}, {majority_kind, "hello", Errc::call_failed}};
  for (const Case& policy : cases) {
    Several group(3, call_of(policy.accept));
    GroupOutcome one;
    one.refused = policy.refused;
    group.call("hello", one);
    group.run();
    EXPECT_EQ(one.completions, 1);
    EXPECT_EQ(one.outcome, policy.outcome);
    for (const auto& [who, said] : one.said) EXPECT_EQ(said, who + ": hello");
    if (policy.outcome == Errc::ok) {
      EXPECT_NE(one.reply, "10.0.0.2: hello");
      EXPECT_NE(one.reply, "");
    }
    EXPECT_TRUE(policy.accept != all_accept_kind || one.said.size() == 3) << one.said.size();
  }
}

}  // namespace
}  // namespace lrpc::netrpc::composite
