// Call style: requests and replies through composite protocols.
#include "netrpc/composite/calls.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "lrpc/netrpc/all_kinds.h"
#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/test/two.h"
#include "netrpc/protocols/select/select.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

std::vector<Part> parts_of(std::vector<MicroKind> kinds, const std::string& tries = "50") {
  std::vector<Part> parts;
  for (MicroKind& kind : std::vector{grpc_kind(), sync_kind(), one_accept_kind()}) kinds.push_back(std::move(kind));
  for (MicroKind& kind : kinds) {
    Part& part = parts.emplace_back(Part{std::move(kind), {}});
    if (part.kind.name == "ACK") part.options.set("tries", tries);
    if (part.kind.name == "BOUNDED") part.options.set("limit", "1s");
  }
  return parts;
}
std::vector<Part> bare(std::size_t /*host*/) { return parts_of({}); }

void call(Two& two, std::string_view text, TestCall& call, Duration timeout = kNoLimit) {
  const Shepherd inside(two.net[0].monitor());
  two.session->call(two.net.message(0, text), call, timeout);
}

TEST(CompositeCalls, a_request_is_answered) {
  Two two(bare);
  TestCall one;
  call(two, "question", one);
  EXPECT_FALSE(one.done());
  EXPECT_EQ(two.statistics(0).state, 1U);
  two.run();
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.completions, 1);
  EXPECT_EQ(one.reply, "question");
  EXPECT_EQ(two.sink[1]->received, std::vector<std::string>{"question"});
  EXPECT_EQ(two.statistics(0).state, 0U);
  EXPECT_EQ(two.statistics(1).state, 0U);
}

TEST(CompositeCalls, only_calls_go_through) {
  Two two(bare);
  EXPECT_EQ(two.push("no call"), Errc::not_supported);
  Two pushes([](std::size_t) { return std::vector<Part>{}; });
  TestCall one;
  call(pushes, "no push", one);
  EXPECT_EQ(one.outcome, Errc::not_supported);
}

TEST(CompositeCalls, end_by_their_timeouts_and_by_their_bounds) {
  SimOptions options;
  options.link = {.loss = 1};
  Two two([](std::size_t) { return parts_of({bounded_kind()}); }, options);
  TestCall calls[2];
  TestCall without;
  call(two, "no time", without, kDoNotWait);
  EXPECT_EQ(without.outcome, Errc::call_aborted);
  EXPECT_EQ(two.statistics(0).state, 0U);
  call(two, "short", calls[0], 10ms);
  call(two, "for ever", calls[1]);
  two.net.world.run_for(11ms);
  EXPECT_EQ(calls[0].outcome, Errc::call_aborted);
  EXPECT_FALSE(calls[1].done());
  two.net.world.run_for(1s);
  EXPECT_EQ(calls[1].outcome, Errc::call_aborted);
  EXPECT_EQ(calls[0].completions + calls[1].completions, 2);
  EXPECT_EQ(two.statistics(0).state, 0U);
}

TEST(CompositeCalls, that_are_cancelled_are_told_nothing) {
  Two two(bare);
  TestCall one;
  call(two, "never mind", one, 1ms);
  {
    const Shepherd inside(two.net[0].monitor());
    two.session->cancel(one);
    two.session->cancel(one);
  }
  two.run();
  EXPECT_FALSE(one.done());
  EXPECT_EQ(two.sink[1]->received.size(), 1U);
}

TEST(CompositeCalls, fail_when_their_server_is_suspected) {
  Two two([](std::size_t) { return parts_of({number_kind(), ack_kind()}, "3"); });
  TestCall calls[2];
  two.net[1].crash();
  for (TestCall& one : calls) call(two, "anybody?", one);
  two.net.world.run_for(1s);
  for (const TestCall& one : calls) EXPECT_EQ(one.outcome, Errc::call_failed);
  two.sink[1] = two.sink[0];  // the other sink was destroyed with its host
}

TEST(CompositeCalls, are_not_ended_by_the_replies_of_others) {
  // The second host has an empty composition, so it receives and sends what is on the wire: a tag, the call's name and
  // its type.
  Two two([](std::size_t host) { return host == 0 ? bare(host) : std::vector<Part>{}; });
  TestCall one;
  call(two, "which?", one);
  two.run();
  ASSERT_EQ(two.sink[1]->received.size(), 1U);
  const std::string request = two.sink[1]->received.front();
  ASSERT_EQ(request.substr(10), "\1which?");
  const auto answer = [&](const std::string& call, char type) {
    {
      const Shepherd inside(two.net[1].monitor());
      EXPECT_EQ(two.sink[1]->sessions.front()->push(two.net.message(1, call + type + "this")), Errc::ok);
    }
    two.run();
  };
  std::string another = request.substr(0, 10);
  ++another.back();
  answer(another, 2);
  answer(another, 3);
  answer(request.substr(0, 2) + std::string(8, '\0'), 2);
  answer(request.substr(0, 10), 0);
  answer(request.substr(0, 10), 4);
  EXPECT_FALSE(one.done());
  EXPECT_EQ(two.layer[0]->bag().count(), 0U);
  EXPECT_EQ(two.statistics(0).refused, 2U);  // of an unknown type
  answer(request.substr(0, 10), 2);
  EXPECT_EQ(one.reply, "this");
  answer(request.substr(0, 10), 2);
  EXPECT_EQ(one.completions, 1);
}

TEST(CompositeCalls, are_executed_once_each_on_wires_that_lose_and_duplicate) {
  for (const std::size_t threads : {0U, 3U}) {
    SimOptions options;
    options.link = {.loss = 0.3, .duplicate = 0.2, .reorder = 0.3};
    Two two([](std::size_t) { return parts_of({ack_kind(), unique_kind(), number_kind()}); }, options, threads);
    std::deque<TestCall> calls;
    for (int i = 0; i < 200; ++i) {
      call(two, std::to_string(i), calls.emplace_back());
      two.net.world.run_for(20ms);
    }
    two.net.world.run_for(60s);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(calls[i].outcome, Errc::ok);
      EXPECT_EQ(calls[i].reply, std::to_string(i));
      EXPECT_EQ(calls[i].completions, 1);
    }
    EXPECT_EQ(two.sink[1]->received.size(), 200U);
    for (std::size_t host = 0; host < 2; ++host) EXPECT_EQ(two.statistics(host).state, 0U);
  }
}

/// A request is not retransmitted once UNIQUE may have forgotten it.
TEST(CompositeCalls, are_not_executed_again_after_a_pause_of_their_client) {
  Two two([](std::size_t) { return parts_of({number_kind(), unique_kind(), ack_kind()}, "8"); });
  TestCall one;
  call(two, "once", one);
  two.net.world.set_links({.loss = 1});
  two.net[0].pause(20min);
  two.net.world.run_for(15min);
  EXPECT_EQ(two.sink[1]->received.size(), 1U);
  two.net.world.set_links({});
  two.net.world.run_for(10min);
  EXPECT_EQ(two.sink[1]->received.size(), 1U);
  EXPECT_EQ(one.outcome, Errc::call_failed);
  TestCall next;
  call(two, "next", next);
  two.run();
  EXPECT_EQ(next.outcome, Errc::ok);
}

/// ACK respects the idle time of UNIQUE, whatever its own options are.
TEST(CompositeCalls, are_not_repeated_when_unique_may_have_forgotten_them) {
  Two two([](std::size_t) {
    std::vector<Part> parts = parts_of({number_kind()});
    parts.push_back(part(unique_kind(), {{"idle", "1s"}}));
    parts.push_back(part(ack_kind(), {{"interval", "1s"}, {"tries", "20"}, {"idle", "60s"}}));
    return parts;
  });
  TestCall one;
  call(two, "once", one);
  two.net.world.set_links({.loss = 1});
  two.net.world.run_for(10s);
  EXPECT_EQ(two.sink[1]->received.size(), 1U);
  two.net.world.set_links({});
  two.net.world.run_for(5min);
  EXPECT_EQ(two.sink[1]->received.size(), 1U);
  EXPECT_EQ(one.outcome, Errc::call_failed);
}

/// Never answers: drops its requests, or keeps them.
class Silent final : public Protocol {
 public:
  explicit Silent(Host& host) : Protocol(host, "silent") {}
  Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override { return Errc::ok; }
  void call_demux(Session& lower, Message request) noexcept override {
    if (text_of(request) == "keep") kept.emplace_back(&lower);
  }
  std::vector<SessionRef> kept;
};

TEST(CompositeCalls, a_request_may_be_answered_late_once_or_never) {
  Two two(bare);
  auto& silent = two.net[1].add<Silent>();
  SessionRef session;
  TestCall calls[2];
  {
    const Shepherd inside(two.net[1].monitor());
    EXPECT_TRUE(two.layer[1]->open_enable(silent, SimHosts::anyone(protocol_numbers::kFirstOfTests + 1)));
  }
  {
    const Shepherd inside(two.net[0].monitor());
    session = *two.layer[0]->open(*two.sink[0], two.net.to(1, protocol_numbers::kFirstOfTests + 1));
    session->call(two.net.message(0, "keep"), calls[0], kNoLimit);
    session->call(two.net.message(0, "let go"), calls[1], 1s);
  }
  two.run();
  EXPECT_EQ(two.statistics(1).state, 1U);
  ASSERT_EQ(silent.kept.size(), 1U);
  {
    const Shepherd inside(two.net[1].monitor());
    silent.kept[0]->reply(two.net.message(1, "late"));
    silent.kept[0]->reply(two.net.message(1, "twice"));
    silent.kept.clear();
  }
  two.net.world.run_for(2s);
  EXPECT_EQ(calls[0].reply, "late");
  EXPECT_EQ(calls[0].completions, 1);
  EXPECT_EQ(calls[1].outcome, Errc::call_aborted);
  session = {};
}

TEST(CompositeCalls, a_selection_layer_stands_on_a_composition_of_the_graph) {
  const auto parse = [](const std::string& inside) {
    return GraphDescription::parse("udp = UDP; calls = COMPOSITE { " + inside + " } over udp; top = SELECT over calls;",
                                   all_kinds());
  };
  const auto right = parse("GRPC; SYNC; ONE_ACCEPT; NUMBER; UNIQUE; ACK;");
  ASSERT_TRUE(right) << right.error().message();
  EXPECT_EQ(right->instances()[1].gives, Service::transaction);
  EXPECT_FALSE(right->instances()[1].repeats);
  EXPECT_TRUE(parse("GRPC; SYNC; ONE_ACCEPT; NUMBER; ACK;")->instances()[1].repeats);
  EXPECT_NE(parse("NUMBER;").error().text.find("'calls' delivers messages, but SELECT needs one that answers calls"),
            std::string::npos);
}

TEST(CompositeCalls, select_s_commands_go_through) {
  SimOptions options;
  options.link = {.loss = 0.2};
  Two two([](std::size_t) { return parts_of({ack_kind(), unique_kind(), number_kind()}); }, options);
  auto select = [&](std::size_t host) {
    std::shared_ptr<Protocol> made = make_select(two.net[host].host(), "select", *two.layer[host], {});
    Protocol& protocol = *made;
    two.net[host].own(std::move(made));
    return &protocol;
  };
  Protocol* const server = select(1);
  Protocol* const client = select(0);
  {
    const Shepherd inside(two.net[1].monitor());
    ParticipantSet participants;
    participants.local.command = 7;
    EXPECT_TRUE(server->open_enable(*two.sink[1], participants));
  }
  std::deque<TestCall> calls;
  SessionRef session;
  {
    const Shepherd inside(two.net[0].monitor());
    ParticipantSet participants = two.net.to(1);
    participants.remote.command = 7;
    session = *client->open(*two.sink[0], participants);
    for (int i = 0; i < 20; ++i) session->call(two.net.message(0, std::to_string(i)), calls.emplace_back(), 30s);
  }
  two.net.world.run_for(60s);
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i].reply, std::to_string(i));
  session = {};
}

}  // namespace
}  // namespace lrpc::netrpc::composite
