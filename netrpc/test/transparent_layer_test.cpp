// The transparent layers NULL and TRACE, over a simulated Ethernet and over calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "fake_calls.h"
#include "layer_pair.h"
#include "netrpc/protocols/null/null.h"
#include "netrpc/protocols/trace/trace.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
using test::FakeCalls;
using test::make_layer;
using test::Pair;

TEST(NullLayer, messages_go_through_both_ways_between_the_same_participants) {
  Pair pair(null_kind());
  pair.sink[1]->echo = true;
  EXPECT_EQ(pair.push("hello"), Errc::ok);
  pair.net.world.run_until_idle(1s);
  EXPECT_EQ(pair.sink[1]->received, std::vector<std::string>{"hello"});
  EXPECT_EQ(pair.sink[1]->from[0], pair.net.address(0));
  ASSERT_EQ(pair.sink[1]->opened.size(), 1U);
  EXPECT_EQ(pair.sink[1]->opened[0].remote.host, pair.net.address(0));
  EXPECT_EQ(pair.sink[0]->received, std::vector<std::string>{"hello"});
  EXPECT_EQ(pair.session->peer(), pair.net.address(1));
  EXPECT_EQ(pair.statistics(0).sent, 1U);
  EXPECT_EQ(pair.statistics(0).received, 1U);
}

TEST(NullLayer, one_session_below_has_one_session_above_for_as_long_as_somebody_refers_to_it) {
  Pair pair(null_kind());
  const Shepherd inside(pair.net[0].monitor());
  Result<SessionRef> again = pair.layer[0]->open(*pair.sink[0], pair.net.to(1));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, pair.session);
  EXPECT_EQ(pair.statistics(0).sessions, 1U);
  again = Errc::ok;
  Session* const memory = pair.session.get();
  pair.session = {};
  EXPECT_EQ(pair.statistics(0).sessions, 0U);
  again = pair.layer[0]->open(*pair.sink[0], pair.net.to(1));
  EXPECT_EQ(again->get(), memory);  // kept for the next one
}

TEST(NullLayer, a_refused_session_is_not_kept_and_the_message_is_dropped) {
  Pair pair(null_kind());
  pair.sink[1]->accept = Errc::limit_reached;
  EXPECT_EQ(pair.push("hello"), Errc::ok);
  pair.net.world.run_until_idle(1s);
  EXPECT_TRUE(pair.sink[1]->received.empty());
}

TEST(NullLayer, a_high_protocol_that_keeps_no_session_is_served_all_the_same) {
  Pair pair(null_kind());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(pair.push("hello"), Errc::ok);
    pair.net.world.run_until_idle(1s);
    const Shepherd inside(pair.net[1].monitor());
    pair.sink[1]->sessions.clear();
  }
  EXPECT_EQ(pair.sink[1]->received.size(), 3U);
  EXPECT_EQ(pair.sink[1]->opened.size(), 1U);
  EXPECT_EQ(pair.statistics(1).sessions, 0U);
}

TEST(NullLayer, each_protocol_above_gets_its_own_messages_through_one_layer) {
  Pair pair(null_kind());
  SinkProtocol& other = pair.net[1].add<SinkProtocol>("other");
  SinkProtocol& sender = pair.net[0].add<SinkProtocol>("sender");
  {
    const Shepherd inside(pair.net[1].monitor());
    ASSERT_TRUE(pair.layer[1]->open_enable(other, SimHosts::anyone(241)));
  }
  {
    const Shepherd inside(pair.net[0].monitor());
    Result<SessionRef> session = pair.layer[0]->open(sender, pair.net.to(1, 241));
    ASSERT_TRUE(session);
    EXPECT_EQ(session.value()->push(pair.net.message(0, "other")), Errc::ok);
  }
  EXPECT_EQ(pair.push("first"), Errc::ok);
  pair.net.world.run_until_idle(1s);
  EXPECT_EQ(other.received, std::vector<std::string>{"other"});
  EXPECT_EQ(pair.sink[1]->received, std::vector<std::string>{"first"});
  {
    const Shepherd inside(pair.net[1].monitor());
    pair.layer[1]->open_disable(*pair.sink[1], SimHosts::anyone());
    other.sessions.clear();
    pair.sink[1]->sessions.clear();
  }
}

TEST(NullLayer, control_requests_pass_down_and_up) {
  Pair pair(null_kind());
  const Shepherd inside(pair.net[0].monitor());
  EXPECT_EQ(test::asked<control::MaximumMessage>(*pair.session).size,
            test::asked<control::MaximumMessage>(pair.net[0].ip()).size);
  EXPECT_GT(test::asked<control::MaximumMessage>(*pair.layer[0]).size, 0U);
  EXPECT_EQ(test::asked<control::LocalHost>(*pair.layer[0]).host, pair.net.address(0));
  // From below: the value of the protocol above the layer.
  pair.sink[0]->advertised = 777;
  EXPECT_EQ(test::asked<control::AdvertisedMaximum>(*pair.layer[0]).size, 777U);
}

/// A control request that no header of lrpc declares.
struct DepthBelow {
  int layers = 0;  ///< Set by the asker, and added to the answer.
  int metres = 0;  ///< The answer.
};
class Sounder final : public Protocol {
 public:
  explicit Sounder(Host& host, int metres) : Protocol(host, "sounder"), metres_(metres) {}
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    return SessionRef(new SounderSession(*this, high, participants));
  }
  Status open_enable(Protocol& high, const ParticipantSet& /*participants*/) override {
    return enabled = &high, Status();
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    auto* const depth = control::own<DepthBelow>(request);
    if (depth == nullptr) return Protocol::control(request);
    depth->metres = metres_ + depth->layers;
    return Errc::ok;
  }
  Protocol* enabled = nullptr;

 private:
  class SounderSession final : public Session {
   public:
    using Session::Session;
  };
  const int metres_;
};

TEST(NullLayer, a_request_of_a_program_s_own_protocols_passes_through_layers_that_do_not_know_it) {
  SimHosts net(1);
  auto& below = net[0].add<Sounder>(1000);
  auto& above = net[0].add<Sounder>(2000);
  const std::unique_ptr<Protocol> null = make_layer(null_kind(), net[0].host(), below);
  const std::unique_ptr<Protocol> trace = make_layer(trace_kind([](std::string_view) {}), net[0].host(), *null);
  const Shepherd inside(net[0].monitor());
  DepthBelow depth{.layers = 2};
  control::Request request = control::Own(depth);
  EXPECT_EQ(trace->control(request), Errc::ok);
  EXPECT_EQ(depth.metres, 1002);
  ASSERT_TRUE(trace->open_enable(above, SimHosts::anyone()));
  EXPECT_EQ(below.enabled->control(request), Errc::ok) << "from below";
  EXPECT_EQ(depth.metres, 2002);
  {
    const Result<SessionRef> session = trace->open(above, net.to(0));
    ASSERT_TRUE(session);
    EXPECT_EQ((*session)->control(request), Errc::ok);
    EXPECT_EQ(depth.metres, 1002);
  }
  struct Unknown : DepthBelow {
  } unknown;
  request = control::Own(unknown);
  EXPECT_EQ(trace->control(request), Errc::not_supported) << "of another type, though one derived from it";
  request = control::MaximumMessage{};
  EXPECT_EQ(control::own<DepthBelow>(request), nullptr);
}

TEST(NullLayer, what_a_lower_protocol_asks_of_the_one_that_opens_it_is_asked_of_the_one_above) {
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  const std::unique_ptr<Protocol> layer = make_layer(null_kind(), net[0].host(), calls);
  SinkProtocol small(net[0].host());
  SinkProtocol large(net[0].host());
  small.advertised = 100;
  large.advertised = 9000;
  ASSERT_TRUE(layer->open_enable(small, SimHosts::anyone()));
  EXPECT_EQ(test::asked<control::AdvertisedMaximum>(*calls.enabled).size, 100U);
  ASSERT_TRUE(layer->open_enable(large, SimHosts::anyone(241)));
  EXPECT_EQ(test::asked<control::AdvertisedMaximum>(*calls.enabled).size, 9000U);
}

TEST(NullLayer, calls_go_through_and_are_cancelled_and_answered) {
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  const std::unique_ptr<Protocol> layer = make_layer(null_kind(), net[0].host(), calls);
  SinkProtocol high(net[0].host());
  const Shepherd inside(net[0].monitor());
  {
    Result<SessionRef> session = layer->open(high, net.to(0));
    ASSERT_TRUE(session);
    TestCall first;
    session.value()->call(net.message(0, "question"), first, 5ms);
    EXPECT_EQ(first.reply, "question");
    EXPECT_EQ(calls.timeouts.back(), 5ms);
    calls.takes = 1ms;
    TestCall second;
    session.value()->call(net.message(0, "question"), second, kNoLimit);
    session.value()->cancel(second);
    EXPECT_EQ(calls.cancelled, 1);
    EXPECT_FALSE(second.done());
  }
  ASSERT_TRUE(layer->open_enable(high, SimHosts::anyone()));
  calls.arrive("asked");
  EXPECT_EQ(high.received, std::vector<std::string>{"asked"});
  EXPECT_EQ(calls.replies, std::vector<std::string>{"asked"});
  high.sessions.clear();
}

TEST(NullLayer, layers_stand_on_layers) {
  SimHosts net(2);
  SinkProtocol* sinks[2];
  Protocol* tops[2];
  for (std::size_t i = 0; i < 2; ++i) {
    Protocol* top = &net[i].ip();
    for (int layer = 0; layer < 10; ++layer) {
      std::shared_ptr<Protocol> made = make_layer(null_kind(), net[i].host(), *top);
      top = made.get();
      net[i].own(std::move(made));
    }
    tops[i] = top;
    sinks[i] = &net[i].add<SinkProtocol>();
    const Shepherd inside(net[i].monitor());
    ASSERT_TRUE(top->open_enable(*sinks[i], SimHosts::anyone()));
  }
  sinks[1]->echo = true;
  {
    const Shepherd inside(net[0].monitor());
    Result<SessionRef> session = tops[0]->open(*sinks[0], net.to(1));
    ASSERT_TRUE(session);
    EXPECT_EQ(session.value()->push(net.message(0, "deep")), Errc::ok);
  }
  net.world.run_until_idle(1s);
  EXPECT_EQ(sinks[0]->received, std::vector<std::string>{"deep"});
}

TEST(TraceLayer, every_operation_is_one_line_with_time_instance_participants_and_first_bytes) {
  std::vector<std::string> lines;
  Options options;
  options.set("bytes", "3");
  Pair pair(trace_kind([&](std::string_view line) { lines.emplace_back(line); }), options);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "   0.000000000 h1 layer open_enable 240 ? -> ?: ok",
                       "   0.000000000 h2 layer open_enable 240 ? -> ?: ok",
                       "   0.000000000 h1 layer open 240 ? -> 10.0.0.2: ok",
                   }));
  lines.clear();
  EXPECT_EQ(pair.push("hello"), Errc::ok);
  EXPECT_EQ(pair.push("hi"), Errc::ok);
  EXPECT_EQ(pair.push(""), Errc::ok);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].ends_with("-> 10.0.0.2, 5 bytes: 68 65 6c ...")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with("-> 10.0.0.2, 2 bytes: 68 69")) << lines[1];
  EXPECT_TRUE(lines[2].ends_with("-> 10.0.0.2, 0 bytes")) << lines[2];
  lines.clear();
  pair.net.world.run_until_idle(1s);
  ASSERT_GE(lines.size(), 2U);
  EXPECT_NE(lines[0].find(" h2 layer open_done 240 "), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find(" h2 layer demux 240 "), std::string::npos) << lines[1];
}

TEST(TraceLayer, lines_are_bounded_in_each_second_and_the_rest_counted) {
  std::vector<std::string> lines;
  Options options;
  options.set("lines", "5");
  Pair pair(trace_kind([&](std::string_view line) { lines.emplace_back(line); }), options);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pair.push("x"), Errc::ok);
  std::size_t of_first = 0;
  for (const std::string& line : lines) of_first += line.find(" h1 ") != std::string::npos ? 1U : 0U;
  EXPECT_EQ(of_first, 5U);
  pair.net.world.run_for(2s);
  lines.clear();
  EXPECT_EQ(pair.push("y"), Errc::ok);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].ends_with(" h1 layer 17 lines left out")) << lines[0];
}

TEST(TraceLayer, calls_are_shown_with_their_outcome_and_how_long_they_took) {
  std::vector<std::string> lines;
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  calls.takes = 3us;
  const std::unique_ptr<Protocol> layer =
      make_layer(trace_kind([&](std::string_view line) { lines.emplace_back(line); }), net[0].host(), calls);
  SinkProtocol high(net[0].host());
  {
    SessionRef session;
    TestCall call;
    TestCall given_up;
    {
      const Shepherd inside(net[0].monitor());
      session = *layer->open(high, net.to(0));
      lines.clear();
      session->call(net.message(0, "ab"), call, kNoLimit);
    }
    net.world.run_until_idle(1s);
    EXPECT_EQ(call.reply, "ab");
    EXPECT_EQ(lines, (std::vector<std::string>{
                         "   0.000000000 h1 layer call 240 ? -> 10.0.0.1, 2 bytes: 61 62",
                         "   0.000003000 h1 layer completed 240 ? -> 10.0.0.1 after 3000 ns: ok, 2 bytes: 61 62",
                     }));
    const Shepherd inside(net[0].monitor());
    session->call(net.message(0, "ab"), given_up, kNoLimit);
    session->cancel(given_up);
    EXPECT_EQ(calls.cancelled, 1);
    EXPECT_FALSE(given_up.done());
    session->cancel(given_up);  // it is no longer outstanding: no effect
    EXPECT_EQ(calls.cancelled, 1);
    calls.outcome = Errc::call_failed;
    calls.takes = {};
    session->call(net.message(0, "ab"), call, kNoLimit);
    EXPECT_EQ(call.outcome, Errc::call_failed);
    EXPECT_NE(lines.back().find(" after 0 ns: call failed"), std::string::npos) << lines.back();
    ASSERT_TRUE(layer->open_enable(high, SimHosts::anyone()));
    lines.clear();
    calls.arrive("asked");
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_NE(lines[1].find(" call_demux "), std::string::npos);
    EXPECT_NE(lines[2].find(" reply "), std::string::npos);
    high.sessions.clear();
  }
}

TEST(ReplyLayer, a_call_that_is_given_up_again_while_it_is_given_up_ends_once) {
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  calls.takes = 1ms;
  const std::unique_ptr<Protocol> layer = make_layer(trace_kind([](std::string_view) {}), net[0].host(), calls);
  SinkProtocol high(net[0].host());
  TestCall given_up, one, two;
  {
    const Shepherd inside(net[0].monitor());
    SessionRef sessions[2];
    for (SessionRef& session : sessions) session = *layer->open(high, net.to(0));
    calls.when_cancelled = [&] { sessions[0]->cancel(given_up); };
    sessions[0]->call(net.message(0, "x"), given_up, kNoLimit);
    sessions[0]->cancel(given_up);
    EXPECT_EQ(calls.cancelled, 1);
    sessions[0]->call(net.message(0, "one"), one, kNoLimit);
    sessions[1]->call(net.message(0, "two"), two, kNoLimit);
  }
  net.world.run_until_idle(1s);
  EXPECT_FALSE(given_up.done());
  EXPECT_EQ(one.reply, "one");
  EXPECT_EQ(two.reply, "two");
}

}  // namespace
}  // namespace lrpc::netrpc
