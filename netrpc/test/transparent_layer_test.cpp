// NULL, TRACE and FAULT: over a simulated Ethernet, and over calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "fake_calls.h"
#include "netrpc/fault/fault.h"
#include "netrpc/null/null.h"
#include "netrpc/trace/trace.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
using test::FakeCalls;
using test::make_layer;

/// Two hosts, on each a layer over IP (which does not pad) and a sink over that.
struct Pair {
  explicit Pair(const ProtocolKind& kind, const Options& options = {}) {
    for (std::size_t i = 0; i < 2; ++i) {
      layer[i] = put(i, kind, net[i].ip(), options);
      sink[i] = &net[i].add<SinkProtocol>();
      const Shepherd inside(net[i].monitor());
      EXPECT_TRUE(layer[i]->open_enable(*sink[i], SimHosts::anyone()));
    }
    const Shepherd inside(net[0].monitor());
    Result<SessionRef> opened = layer[0]->open(*sink[0], net.to(1));
    EXPECT_TRUE(opened) << opened.error().message();
    session = *opened;
  }
  ~Pair() { session = {}; }
  Protocol* put(std::size_t i, const ProtocolKind& kind, Protocol& below, const Options& options) {
    std::shared_ptr<Protocol> made = make_layer(kind, net[i].host(), below, options);
    Protocol* const protocol = made.get();
    net[i].own(std::move(made));
    return protocol;
  }
  Errc push(std::string_view text) {
    const Shepherd inside(net[0].monitor());
    return session->push(net.message(0, text));
  }
  control::Statistics statistics(std::size_t i) {
    control::Request request = control::Statistics{};
    EXPECT_EQ(layer[i]->control(request), Errc::ok);
    return std::get<control::Statistics>(request);
  }
  SimHosts net{2};
  Protocol* layer[2] = {};
  SinkProtocol* sink[2] = {};
  SessionRef session;
};

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
  control::Request request = control::MaximumMessage{};
  ASSERT_EQ(pair.session->control(request), Errc::ok);
  control::Request direct = control::MaximumMessage{};
  ASSERT_EQ(pair.net[0].ip().control(direct), Errc::ok);
  EXPECT_EQ(std::get<control::MaximumMessage>(request).size, std::get<control::MaximumMessage>(direct).size);
  request = control::MaximumMessage{};
  EXPECT_EQ(pair.layer[0]->control(request), Errc::ok);
  request = control::LocalHost{};
  ASSERT_EQ(pair.layer[0]->control(request), Errc::ok);
  EXPECT_EQ(std::get<control::LocalHost>(request).host, pair.net.address(0));
  // From below: of who stands on the layer.
  pair.sink[0]->advertised = 777;
  request = control::AdvertisedMaximum{};
  ASSERT_EQ(pair.layer[0]->control(request), Errc::ok);
  EXPECT_EQ(std::get<control::AdvertisedMaximum>(request).size, 777U);
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
  control::Request request = control::AdvertisedMaximum{};
  ASSERT_EQ(calls.enabled->control(request), Errc::ok);
  EXPECT_EQ(std::get<control::AdvertisedMaximum>(request).size, 100U);
  ASSERT_TRUE(layer->open_enable(large, SimHosts::anyone(241)));
  ASSERT_EQ(calls.enabled->control(request), Errc::ok);
  EXPECT_EQ(std::get<control::AdvertisedMaximum>(request).size, 9000U);
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
    session.value()->call(net.message(0, "question"), second, {});
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
      session->call(net.message(0, "ab"), call, {});
    }
    net.world.run_until_idle(1s);
    EXPECT_EQ(call.reply, "ab");
    EXPECT_EQ(lines, (std::vector<std::string>{
                         "   0.000000000 h1 layer call 240 ? -> 10.0.0.1, 2 bytes: 61 62",
                         "   0.000003000 h1 layer completed 240 ? -> 10.0.0.1 after 3000 ns: ok, 2 bytes: 61 62",
                     }));
    const Shepherd inside(net[0].monitor());
    session->call(net.message(0, "ab"), given_up, {});
    session->cancel(given_up);
    EXPECT_EQ(calls.cancelled, 1);
    EXPECT_FALSE(given_up.done());
    session->cancel(given_up);  // not outstanding: no effect
    EXPECT_EQ(calls.cancelled, 1);
    calls.outcome = Errc::call_failed;
    calls.takes = {};
    session->call(net.message(0, "ab"), call, {});
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

Options options_of(std::initializer_list<std::pair<const char*, const char*>> given) {
  Options options;
  for (const auto& [name, value] : given) options.set(name, value);
  return options;
}
std::size_t pushed_and_received(const Options& options, std::size_t count, std::vector<std::string>& received) {
  Pair pair(fault_kind(), options);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(pair.push("message " + std::to_string(i)), Errc::ok);
  pair.net.world.run_until_idle(10s);
  received = pair.sink[1]->received;
  return received.size();
}

TEST(FaultLayer, without_options_nothing_happens) {
  std::vector<std::string> received;
  EXPECT_EQ(pushed_and_received({}, 100, received), 100U);
  EXPECT_EQ(received[99], "message 99");
}

TEST(FaultLayer, rates_are_kept_and_one_seed_gives_one_run) {
  const Options lossy = options_of({{"loss", "0.3"}, {"duplicate", "0.2"}, {"on", "push"}, {"seed", "5"}});
  std::vector<std::string> first;
  std::vector<std::string> second;
  const std::size_t count = pushed_and_received(lossy, 2000, first);
  EXPECT_GT(count, 1500U);
  EXPECT_LT(count, 1860U);  // 2000 * 0.7 * 1.2 = 1680
  pushed_and_received(lossy, 2000, second);
  EXPECT_EQ(first, second);
  pushed_and_received(options_of({{"loss", "0.3"}, {"duplicate", "0.2"}, {"on", "push"}, {"seed", "6"}}), 2000, second);
  EXPECT_NE(first, second);
}

TEST(FaultLayer, everything_can_be_lost_on_either_way) {
  std::vector<std::string> received;
  EXPECT_EQ(pushed_and_received(options_of({{"loss", "1"}, {"on", "push"}}), 50, received), 0U);
  EXPECT_EQ(pushed_and_received(options_of({{"loss", "1"}, {"on", "demux"}}), 50, received), 0U);
}

TEST(FaultLayer, reordered_messages_arrive_later_but_arrive) {
  std::vector<std::string> received;
  EXPECT_EQ(pushed_and_received(options_of({{"reorder", "0.2"}, {"on", "push"}, {"hold", "50us"}}), 200, received),
            200U);
  EXPECT_FALSE(std::is_sorted(received.begin(), received.end(), [](const auto& a, const auto& b) {
    return std::stoi(a.substr(8)) < std::stoi(b.substr(8));
  }));
}

TEST(FaultLayer, a_damaged_message_differs_in_one_bit_and_the_senders_copy_does_not) {
  Pair pair(fault_kind(), options_of({{"corrupt", "1"}, {"on", "push"}}));
  const std::string original(300, 'x');
  Message message = pair.net.message(0, original);
  const Message copy = message.share();
  {
    const Shepherd inside(pair.net[0].monitor());
    EXPECT_EQ(pair.session->push(std::move(message)), Errc::ok);
  }
  pair.net.world.run_until_idle(1s);
  ASSERT_EQ(pair.sink[1]->received.size(), 1U);
  const std::string& received = pair.sink[1]->received[0];
  ASSERT_EQ(received.size(), original.size());
  int bits = 0;
  for (std::size_t i = 0; i < received.size(); ++i)
    bits += std::popcount(static_cast<unsigned>(static_cast<unsigned char>(received[i] ^ original[i])));
  EXPECT_EQ(bits, 1);
  EXPECT_EQ(text_of(copy), original);
}

TEST(FaultLayer, delayed_messages_wait_in_order_and_no_more_than_so_many) {
  Pair pair(fault_kind(), options_of({{"delay", "5ms"}, {"on", "push"}, {"most", "3"}}));
  for (const char* text : {"a", "b", "c", "d"}) EXPECT_EQ(pair.push(text), Errc::ok);
  EXPECT_EQ(pair.statistics(0).state, 3U);
  EXPECT_EQ(pair.statistics(0).refused, 1U);
  pair.net.world.run_for(4ms);
  EXPECT_TRUE(pair.sink[1]->received.empty());
  pair.net.world.run_for(2ms);
  EXPECT_EQ(pair.sink[1]->received, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(pair.statistics(0).state, 0U);
  // What is still held when the graph goes is dropped.
  EXPECT_EQ(pair.push("e"), Errc::ok);
}

TEST(FaultLayer, calls_fail_or_wait_and_are_cancelled_while_they_wait) {
  SimHosts net(1);
  FakeCalls& calls = net[0].add<FakeCalls>();
  SinkProtocol high(net[0].host());
  const auto lossy = make_layer(fault_kind(), net[0].host(), calls, options_of({{"loss", "1"}}));
  const auto slow = make_layer(fault_kind(), net[0].host(), calls, options_of({{"delay", "2ms"}}));
  TestCall lost;
  TestCall late;
  TestCall aborted;
  TestCall cancelled;
  {
    const Shepherd inside(net[0].monitor());
    (*lossy->open(high, net.to(0)))->call(net.message(0, "x"), lost, {});
    EXPECT_EQ(lost.outcome, Errc::call_failed);
    EXPECT_TRUE(calls.timeouts.empty());
    (*slow->open(high, net.to(0)))->call(net.message(0, "x"), late, 5ms);
    (*slow->open(high, net.to(0)))->call(net.message(0, "x"), aborted, 1ms);
    const SessionRef session = *slow->open(high, net.to(0));
    session->call(net.message(0, "x"), cancelled, {});
    session->cancel(cancelled);
  }
  net.world.run_for(1ms);
  EXPECT_EQ(aborted.outcome, Errc::call_aborted);
  EXPECT_FALSE(late.done());
  net.world.run_until_idle(1s);
  EXPECT_EQ(late.reply, "x");
  EXPECT_EQ(calls.timeouts, std::vector<Duration>{3ms});
  EXPECT_FALSE(cancelled.done());
}

TEST(FaultLayer, a_wrong_direction_is_an_error) {
  SimHosts net(1);
  const Result<std::unique_ptr<Protocol>> made =
      fault_kind().make({net[0].host(), "fault", {&net[0].ip()}, options_of({{"on", "both ways"}})});
  EXPECT_EQ(made.error().text, "'both ways' is no value for the option 'on', write push, demux or both");
}

}  // namespace
}  // namespace lrpc::netrpc
