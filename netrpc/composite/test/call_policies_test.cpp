// Policies for calls that take long, for the order of calls, and for requests whose client has crashed.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "length.h"
#include "netrpc/composite/test/several.h"
#include "netrpc/protocols/select/select.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

PartsOf with(MicroKind (*kind)(), const std::vector<std::pair<std::string, std::string>>& options = {}) {
  return [kind, options] {
    return std::vector<Part>{part(grpc_kind()), part(sync_kind()), part(one_accept_kind()), part(kind(), options)};
  };
}

TEST(CallPolicies, reply_order_ends_calls_in_the_order_of_their_beginning) {
  Several one(1, with(reply_order_kind));
  GroupOutcome calls[4];
  one.servers[1]->keeps = true;
  one.call("0", calls[0]);
  one.call("1", calls[1], 1s);
  one.run();
  one.servers[1]->keeps = false;
  one.call("2", calls[2]);
  one.run();
  one.call("3", calls[3], 500ms);
  one.run();
  for (const GroupOutcome& each : calls) EXPECT_FALSE(each.done());
  one.run(500ms);
  EXPECT_EQ(calls[3].outcome, Errc::call_aborted);  // a failure does not wait for earlier calls
  one.answer(1);
  one.run();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(calls[i].outcome, Errc::ok);
  EXPECT_EQ(calls[1].when, calls[0].when + 1);
  EXPECT_EQ(calls[2].when, calls[1].when + 1);
  EXPECT_EQ(one.state(0), 0U);
}

/// Also when other threads conclude the calls that wait.
TEST(CallPolicies, reply_order_brings_the_replies_of_pushes_in_the_order_of_the_pushes) {
  for (const std::size_t threads : {0U, 3U}) {
    Several one(
        1,
        [] {
          return std::vector<Part>{part(grpc_kind()), part(async_kind()), part(one_accept_kind()),
                                   part(reply_order_kind())};
        },
        {}, threads);
    std::vector<std::string> replies;
    one.net.world.set_links({.latency = 10ms});
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(one.push(std::to_string(i)), Errc::ok);
      replies.push_back("10.0.0.2: " + std::to_string(i));
      one.run(1ms);
      one.net.world.set_links({});  // later pushes overtake the first one
    }
    one.run();
    EXPECT_EQ(one.client->received, replies) << threads;
    EXPECT_EQ(one.state(0), 0U);
  }
}

TEST(CallPolicies, reply_order_does_not_wait_for_calls_that_have_failed) {
  Several one(1, with(reply_order_kind));
  GroupOutcome calls[3];
  one.servers[1]->keeps = true;
  one.call("0", calls[0], 1s);
  one.call("1", calls[1]);
  one.run();
  one.servers[1]->keeps = false;
  one.call("2", calls[2]);
  one.run();
  EXPECT_FALSE(calls[2].done());
  {
    const Shepherd inside(one.net[0].monitor());
    one.session->cancel(calls[1]);
  }
  one.run();
  EXPECT_FALSE(calls[2].done());
  one.run(1s);
  EXPECT_EQ(calls[0].outcome, Errc::call_aborted);
  EXPECT_EQ(calls[2].outcome, Errc::ok);
}

bool wanted(Session& request) { return test::asked<control::Wanted>(request).wanted; }

TEST(CallPolicies, avoid_interference_lets_the_requests_of_the_life_before_end_first) {
  Several one(1, with(avoid_interference_kind));
  GroupOutcome calls[5];
  one.servers[1]->keeps = true;
  for (std::size_t i = 0; i < 2; ++i) one.call("before", calls[i]);
  one.run();
  EXPECT_EQ(one.servers[1]->executed.size(), 2U);  // requests of one life do not wait for each other
  one.next_life();
  one.call("after", calls[2]);
  one.run();
  EXPECT_EQ(one.servers[1]->executed.size(), 2U);
  EXPECT_TRUE(wanted(*one.servers[1]->kept.front().session));
  {
    const Shepherd inside(one.net[1].monitor());
    one.servers[1]->kept.front().session->reply(one.servers[1]->answer("late"));
    one.servers[1]->kept.erase(one.servers[1]->kept.begin());
  }
  one.run();
  EXPECT_EQ(one.servers[1]->executed.size(), 2U);
  one.next_life();  // waiting requests of the earlier life are dropped
  one.call("at last", calls[3]);
  one.run();
  one.servers[1]->keeps = false;
  one.let_go(1);
  one.run();
  EXPECT_EQ(one.servers[1]->executed, (std::vector<std::string>{"before", "before", "at last"}));
  EXPECT_EQ(calls[3].outcome, Errc::ok);
  EXPECT_TRUE(calls[3].done());
  one.call("and on", calls[4]);
  one.run();
  EXPECT_TRUE(calls[4].done());
  EXPECT_EQ(one.layers[1]->bag().count(), 0U);
}

TEST(CallPolicies, terminate_orphans_gives_up_the_requests_of_the_life_before) {
  Several one(1, with(terminate_orphans_kind));
  GroupOutcome calls[2];
  one.servers[1]->keeps = true;
  one.call("before", calls[0]);
  one.run();
  ASSERT_EQ(one.servers[1]->kept.size(), 1U);
  EXPECT_TRUE(wanted(*one.servers[1]->kept.front().session));
  one.next_life();
  one.servers[1]->keeps = false;
  one.call("after", calls[1]);
  one.run();
  EXPECT_EQ(calls[1].outcome, Errc::ok);
  EXPECT_TRUE(calls[1].done());
  EXPECT_FALSE(wanted(*one.servers[1]->kept.front().session));
  const std::uint64_t sent = one.statistics(1).sent;
  one.answer(1);
  one.run();
  EXPECT_EQ(one.statistics(1).sent, sent);
  EXPECT_EQ(one.state(1), 0U);
}

TEST(CallPolicies, a_client_whose_life_before_fills_the_server_can_call_again) {
  for (const auto kind : {avoid_interference_kind, terminate_orphans_kind}) {
    Several one(1, with(kind, {{"hold", "3"}}));
    GroupOutcome calls[5];
    one.servers[1]->keeps = true;
    for (std::size_t i = 0; i < 4; ++i) one.call("before", calls[i]);
    one.run();
    EXPECT_EQ(one.servers[1]->kept.size(), 3U);
    one.next_life();
    one.servers[1]->keeps = false;
    one.call("after", calls[4]);
    one.run();
    EXPECT_EQ(calls[4].done(), kind == terminate_orphans_kind);
    for (const Server::Kept& each : one.servers[1]->kept)
      EXPECT_EQ(wanted(*each.session), kind == avoid_interference_kind);
    one.answer(1);
    one.run();
    EXPECT_EQ(calls[4].outcome, Errc::ok);
  }
}

TEST(CallPolicies, terminate_orphans_gives_up_the_requests_of_who_is_suspected) {
  Several one(1, [] {
    std::vector<Part> parts = with(terminate_orphans_kind)();
    parts.push_back(part(number_kind()));
    parts.push_back(part(ack_kind(), {{"tries", "3"}}));
    return parts;
  });
  GroupOutcome calls[2];
  one.servers[1]->keeps = true;
  for (GroupOutcome& each : calls) one.call("before", each);
  one.run();
  one.session = {};
  one.net[0].crash();
  {
    const Shepherd inside(one.net[1].monitor());
    one.servers[1]->kept.front().session->reply(one.servers[1]->answer("too late"));  // no host acknowledges this
  }
  one.run(1s);
  EXPECT_FALSE(wanted(*one.servers[1]->kept.back().session));
}

/// Under both policies: a request of the earlier life that was in transit for long arrives after one of the next life.
TEST(CallPolicies, requests_of_lives_that_are_over_do_not_begin) {
  for (const auto kind : {avoid_interference_kind, terminate_orphans_kind}) {
    Several one(1, with(kind));
    GroupOutcome calls[3];
    one.net.world.set_links({.latency = 1s});
    one.call("slow", calls[1]);
    one.run(1ms);
    one.net.world.set_links({});
    one.next_life();
    one.call("quick", calls[2]);
    one.run(2s);
    EXPECT_EQ(one.servers[1]->executed, std::vector<std::string>{"quick"});
    EXPECT_EQ(one.layers[1]->bag().count(), 0U);
  }
}

/// Puts SELECT over the server's composite protocol, and a server over that.
Server& select_server(Several& one, std::size_t host) {
  std::shared_ptr<Protocol> made = make_select(one.net[host].host(), "select", *one.layers[host], {});
  Protocol& select = *made;
  one.net[host].own(std::move(made));
  auto& server = one.net[host].add<Server>();
  const Shepherd inside(one.net[host].monitor());
  ParticipantSet command;
  command.local.command = 7;
  EXPECT_TRUE(select.open_enable(server, command));
  return server;
}
SessionRef select_client(Several& one) {
  std::shared_ptr<Protocol> made = make_select(one.net[0].host(), "select", *one.layers[0], {});
  Protocol& select = *made;
  one.net[0].own(std::move(made));
  const Shepherd inside(one.net[0].monitor());
  ParticipantSet participants = one.net.to(1);
  participants.remote.command = 7;
  return *select.open(*one.client, participants);
}

TEST(CallPolicies, atomic_asks_the_server_above_a_selection_layer) {
  Several one(1, with(atomic_kind));
  Server& server = select_server(one, 1);
  one.session = select_client(one);
  GroupOutcome calls[3];
  one.call("done", calls[0], 10s);
  one.run();
  EXPECT_EQ(calls[0].outcome, Errc::ok);
  EXPECT_EQ(server.committed, 1);
  server.keeps = true;
  one.call("let go", calls[1], 10s);
  one.run();
  {
    const Shepherd inside(one.net[1].monitor());
    std::exchange(server.kept, {}).clear();
  }
  one.run();
  EXPECT_EQ(calls[1].outcome, Errc::call_failed);
  EXPECT_EQ(server.rolled_back, 1);
  EXPECT_EQ(server.committed, 1);
  server.keeps = false;
  server.commits = false;
  one.call("cannot", calls[2], 10s);
  one.run(20s);
  EXPECT_EQ(calls[2].outcome, Errc::call_aborted);
}

/// Each is executed in its own turn, not nested in the previous one.
TEST(CallPolicies, many_that_wait_are_executed_one_after_the_other) {
  for (const auto kind : {atomic_kind, avoid_interference_kind}) {
    const int many = testing_lrpc::long_tests() ? 5000 : 2000;
    Several one(1, with(kind, {{"hold", "20000"}}));
    std::deque<GroupOutcome> calls;
    one.servers[1]->keeps = true;
    one.call("first", calls.emplace_back());
    one.run();
    one.next_life();
    calls.clear();
    for (int i = 0; i < many; ++i) one.call(std::to_string(i), calls.emplace_back());
    one.run();
    one.servers[1]->keeps = false;
    one.answer(1);
    one.run(1s);
    EXPECT_EQ(one.servers[1]->deepest, 1);
    EXPECT_EQ(std::ranges::count(calls, Errc::ok, &GroupOutcome::outcome), many);
  }
}

TEST(CallPolicies, atomic_executes_one_request_at_a_time) {
  Several one(1, with(atomic_kind, {{"hold", "4"}}));
  GroupOutcome calls[4];
  Server& server = *one.servers[1];
  server.keeps = true;
  for (std::size_t i = 0; i < 4; ++i) one.call(std::to_string(i), calls[i], 10s);
  one.run();
  EXPECT_EQ(server.executed, std::vector<std::string>{"0"});
  EXPECT_EQ(server.committed, 0);
  one.answer(1);
  one.run();
  EXPECT_EQ(server.executed, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(server.committed, 1);
  EXPECT_TRUE(calls[0].done());
  server.commits = false;
  one.let_go(1);
  one.run();
  EXPECT_EQ(server.rolled_back, 1);
  EXPECT_EQ(server.executed, (std::vector<std::string>{"0", "1", "2"}));
  one.run(20s);
  EXPECT_EQ(server.committed, 1);
  EXPECT_EQ(server.rolled_back, 1);
  EXPECT_EQ(server.executed.size(), 3U);  // there was no room for the last request
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(calls[i].outcome, Errc::call_aborted) << i;
  EXPECT_EQ(one.layers[1]->bag().count(), 0U);
  EXPECT_EQ(one.state(1), 0U);
}

PartsOf watched() { return with(still_working_kind, {{"interval", "100ms"}, {"silences", "3"}}); }

TEST(CallPolicies, calls_that_take_long_go_on_while_their_server_works) {
  Several one(1, watched());
  GroupOutcome call;
  one.servers[1]->keeps = true;
  one.call("long", call);
  one.run(60s);
  EXPECT_FALSE(call.done());
  one.answer(1);
  one.run();
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_TRUE(call.done());
  one.run(1s);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(one.layers[i]->events().timers(), 0U);
    EXPECT_EQ(one.layers[i]->bag().count(), 0U);
    EXPECT_EQ(one.statistics(i).refused, 0U);
  }
}

/// A retransmission by ACK belongs to the same call.
TEST(CallPolicies, calls_that_take_long_go_on_although_a_request_was_lost) {
  Several one(1, [] {
    std::vector<Part> parts = watched()();
    parts.push_back(part(number_kind()));
    parts.push_back(part(unique_kind()));
    parts.push_back(part(ack_kind()));
    return parts;
  });
  GroupOutcome call;
  one.servers[1]->keeps = true;
  one.net.world.set_links({.loss = 1});
  one.call("long", call);
  one.run(10ms);
  one.net.world.set_links({});
  one.run(60s);
  EXPECT_FALSE(call.done());
  EXPECT_EQ(one.statistics(0).refused, 0U);
  one.answer(1);
  one.run();
  EXPECT_EQ(call.outcome, Errc::ok);
}

TEST(CallPolicies, calls_fail_when_their_server_has_begun_again) {
  Several one(2, [] {
    std::vector<Part> parts = watched()();
    parts[2] = part(all_accept_kind());
    return parts;
  });
  GroupOutcome call;
  one.servers[1]->keeps = one.servers[2]->keeps = true;
  one.call("long", call);
  one.run(1s);
  one.servers[2]->kept.clear();
  one.net[2].crash();
  one.net[2].boot();
  one.run(1s);
  EXPECT_FALSE(call.done());
  one.answer(1);
  one.run();
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(call.said["10.0.0.3"], failure(Errc::call_failed));
  GroupOutcome alone;
  one.net[1].crash();
  one.net[2].crash();
  one.call("anybody?", alone);
  one.run(1s);
  EXPECT_EQ(alone.outcome, Errc::call_failed);
}

}  // namespace
}  // namespace lrpc::netrpc::composite
