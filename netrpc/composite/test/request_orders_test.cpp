// When a server's requests begin, and when their replies leave: ATOMIC, and what becomes of orphans.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "netrpc/composite/test/several.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

/// GRPC with these parts.
PartsOf with(std::vector<Part> (*more)()) {
  return [more] {
    std::vector<Part> parts{part(grpc_kind()), part(sync_kind()), part(one_accept_kind())};
    for (Part& one : more()) parts.push_back(std::move(one));
    return parts;
  };
}

void wait_in(Server& server, Duration time) {
  Host& host = server.host();
  (void)host.engine().wait(
      host, [] { return false; }, host.now() + time);
}

/// Handlers of one event run in an order that is drawn: ACK must not keep a copy of the reply before, and send that.
TEST(RequestOrders, no_reply_leaves_before_atomic_has_the_servers_word) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SimOptions options;
    options.seed = seed;
    Several one(
        1, with([] {
          return std::vector<Part>{part(number_kind()), part(unique_kind()), part(ack_kind()), part(atomic_kind())};
        }),
        options);
    Server& server = *one.servers[1];
    server.commits = false;
    server.settles = [&server](bool) { wait_in(server, 200ms); };
    GroupOutcome call;
    one.call("x", call);
    one.run(5s);
    EXPECT_EQ(server.executed.size(), 1U);
    EXPECT_FALSE(call.done() && call.outcome == Errc::ok) << "seed " << seed;
  }
}

/// 3 overtakes 2 while 1 is executed for longer than FIFO waits.
TEST(RequestOrders, atomic_executes_requests_in_the_order_in_which_fifo_lets_them_go) {
  Several one(
      1, with([] {
        return std::vector<Part>{part(number_kind()), part(fifo_kind(), {{"patience", "100ms"}}), part(atomic_kind())};
      }));
  Server& server = *one.servers[1];
  GroupOutcome calls[3];
  server.keeps = true;
  one.call("1", calls[0]);
  one.run();
  one.net.world.set_links({.latency = 50ms});
  one.call("2", calls[1]);
  one.net.world.set_links({});
  one.call("3", calls[2]);
  one.run(1s);
  ASSERT_EQ(server.executed.size(), 1U);
  server.keeps = false;
  one.answer(1);
  one.run();
  EXPECT_EQ(server.executed, (std::vector<std::string>{"1", "2", "3"}));
}

/// Requests that have begun are not told again with the end of each other one.
TEST(RequestOrders, each_request_that_has_waited_for_orphans_costs_the_same_however_many_there_are) {
  const auto raised_with = [](int waiting) {
    Several one(1, with([] { return std::vector<Part>{part(avoid_interference_kind())}; }));
    Server& server = *one.servers[1];
    std::deque<GroupOutcome> calls;
    server.keeps = true;
    one.call("before", calls.emplace_back());
    one.run();
    one.next_life();
    calls.clear();
    for (int i = 0; i < waiting; ++i) one.call("after", calls.emplace_back());
    one.run();
    EXPECT_EQ(server.executed.size(), 1U);
    server.keeps = false;
    const std::uint64_t before = one.layers[1]->events().raised();
    one.answer(1);
    one.run();
    EXPECT_EQ(std::ranges::count(calls, Errc::ok, &GroupOutcome::outcome), waiting);
    return one.layers[1]->events().raised() - before;
  };
  EXPECT_EQ(raised_with(20) - raised_with(10), raised_with(10) - raised_with(0));
}

TEST(RequestOrders, the_answers_for_a_suspected_client_are_wanted_again_when_it_is_heard) {
  Several one(1, with([] {
                return std::vector<Part>{part(terminate_orphans_kind()), part(number_kind()),
                                         part(ack_kind(), {{"tries", "3"}})};
              }));
  const auto wanted = [&one](std::size_t which) {
    const Shepherd inside(one.net[1].monitor());
    return test::asked<control::Wanted>(*one.servers[1]->kept[which].session).wanted;
  };
  const auto answer = [&one](std::size_t which) {
    const Shepherd inside(one.net[1].monitor());
    one.servers[1]->kept[which].session->reply(one.servers[1]->answer("late"));
  };
  GroupOutcome calls[3];
  one.servers[1]->keeps = true;
  for (GroupOutcome& each : calls) one.call("x", each);
  one.run();
  one.net.world.set_links({.loss = 1});
  answer(0);
  one.run(1s);
  EXPECT_FALSE(wanted(2));
  one.net.world.set_links({});
  answer(1);  // which the client acknowledges
  one.run();
  EXPECT_TRUE(wanted(2));
}

}  // namespace
}  // namespace lrpc::netrpc::composite
