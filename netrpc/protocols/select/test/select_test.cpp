// SELECT over CHANNEL on simulated wires.
#include "lrpc/netrpc/blocking_call.h"
#include "netrpc/protocols/select/header.h"
#include "netrpc/protocols/select/test/select_hosts.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

TEST(SelectTest, a_call_reaches_the_server_of_its_command) {
  SelectHosts net(2);
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  TestCall call;
  net.call(0, session, call, "hello");
  net.world.run_for(1ms);
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(call.reply, "hello");
}

TEST(SelectTest, a_thread_may_wait_for_a_call) {
  SelectHosts net(2);
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  Message reply;
  EXPECT_EQ(call_and_wait(session, net.message(0, "hello"), reply, 1s), Errc::ok);
  EXPECT_EQ(text_of(reply), "hello");
}

TEST(SelectTest, a_command_that_nobody_serves_is_a_bad_procedure_and_command_zero_serves_all_others) {
  SelectHosts net(3);
  net.serve(1, 7);
  Session& session = net.open(0, 1, 8);
  TestCall call;
  net.call(0, session, call, "hello");
  net.world.run_for(1ms);
  EXPECT_EQ(call.outcome, Errc::bad_procedure);
  EXPECT_TRUE(call.reply.empty());
  net.serve(1, 0);
  TestCall served;
  net.call(0, session, served, "hello");
  net.world.run_for(1ms);
  EXPECT_EQ(served.outcome, Errc::ok);
}

TEST(SelectTest, a_command_has_one_server_until_it_is_taken_back) {
  SelectHosts net(2);
  net.serve(1, 7);
  ParticipantSet participants;
  participants.local.command = 7;
  SlowServer other(net[1].host());
  EXPECT_EQ(net.selects[1]->open_enable(other, participants).code(), Errc::name_taken);
  net.selects[1]->open_disable(other, participants);  // another protocol's registration: no effect
  EXPECT_EQ(net.selects[1]->open_enable(other, participants).code(), Errc::name_taken);
  net.selects[1]->open_disable(*net.servers[1], participants);
  EXPECT_TRUE(net.selects[1]->open_enable(other, participants));
}

TEST(SelectTest, sessions_are_cached_and_share_the_channels_of_their_host) {
  SelectHosts net(2, {.channels = 2});
  net.serve(1, 0);
  EXPECT_EQ(&net.open(0, 1, 7), &net.open(0, 1, 7));
  EXPECT_NE(&net.open(0, 1, 7), &net.open(0, 1, 8));
  EXPECT_EQ(SelectHosts::statistics(*net.selects[0]).sessions, 2U);
  net.servers[1]->at_once = false;
  TestCall calls[4];
  for (std::size_t i = 0; i < 4; ++i) net.call(0, *net.sessions[i], calls[i], "x");
  net.world.run_for(1ms);
  EXPECT_EQ(net.servers[1]->pending.size(), 2U);
  EXPECT_EQ(SelectHosts::statistics(*net.channels[0]).sessions, 2U);
}

TEST(SelectTest, calls_wait_their_turn_where_no_channel_is_free) {
  SelectHosts net(2, {.channels = 3});
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  net.servers[1]->at_once = false;
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(std::make_unique<TestCall>());
    net.call(0, session, *calls.back(), std::to_string(i));
  }
  for (std::size_t i = 0; i < 20; ++i) {
    net.world.run_for(1ms);
    ASSERT_EQ(net.servers[1]->pending.size(), std::min<std::size_t>(3, 20 - i));
    net.servers[1]->answer_next();
  }
  net.world.run_for(1ms);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(calls[static_cast<std::size_t>(i)]->reply, std::to_string(i));
    EXPECT_EQ(net.servers[1]->executed[static_cast<std::size_t>(i)], std::to_string(i));  // in order of arrival
  }
}

TEST(SelectTest, a_call_for_which_the_queue_has_no_room_is_refused_and_was_never_sent) {
  SelectHosts net(2, {.channels = 1, .queue = 2});
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  net.servers[1]->at_once = false;
  TestCall calls[5];
  for (std::size_t i = 0; i < 4; ++i) net.call(0, session, calls[i], std::to_string(i));
  EXPECT_EQ(calls[3].completions, 1);
  EXPECT_EQ(calls[3].outcome, Errc::limit_reached);
  net.world.run_for(1ms);
  net.servers[1]->answer_next();  // a waiting call gets the channel, and the queue has room for another
  net.world.run_for(1ms);
  net.call(0, session, calls[4], "4");
  EXPECT_FALSE(calls[4].done());
  for (int i = 0; i < 3; ++i) {
    net.servers[1]->answer_next();
    net.world.run_for(1ms);
  }
  for (const std::size_t i : {0U, 1U, 2U, 4U}) EXPECT_EQ(calls[i].outcome, Errc::ok) << i;
  EXPECT_EQ(net.servers[1]->executed.size(), 4U);
}

TEST(SelectTest, the_channel_that_was_used_last_is_used_next) {
  SelectHosts net(2, {.channels = 8});
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  for (int i = 0; i < 50; ++i) {
    TestCall call;
    net.call(0, session, call, "x");
    net.world.run_for(1ms);
    EXPECT_TRUE(call.done());
  }
  EXPECT_EQ(SelectHosts::statistics(*net.channels[0]).sessions, 1U);
}

TEST(SelectTest, the_timeout_of_a_waiting_call_counts_and_one_that_was_sent_keeps_its_channel) {
  SelectHosts net(2, {.channels = 1});
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  net.servers[1]->at_once = false;
  TestCall sent;
  TestCall waiting;
  TestCall patient;
  net.call(0, session, sent, "sent", 20ms);
  net.call(0, session, waiting, "waiting", 10ms);
  net.call(0, session, patient, "patient");
  net.world.run_for(9900us);
  EXPECT_EQ(waiting.completions, 0);
  net.world.run_for(200us);
  EXPECT_EQ(waiting.outcome, Errc::call_aborted);
  EXPECT_EQ(sent.completions, 0);
  net.world.run_for(10ms);
  EXPECT_EQ(sent.outcome, Errc::call_aborted);
  net.world.run_for(100ms);
  EXPECT_EQ(net.servers[1]->executed.size(), 1U) << "the server still works on the only channel";
  net.servers[1]->answer_next();
  net.world.run_for(1s);
  ASSERT_EQ(net.servers[1]->pending.size(), 1U);
  net.servers[1]->answer_next();
  net.world.run_for(1ms);
  EXPECT_EQ(patient.reply, "patient");
  EXPECT_EQ(sent.completions, 1);
  EXPECT_EQ(waiting.completions, 1);
  EXPECT_EQ(net.servers[1]->executed, (std::vector<std::string>{"sent", "patient"}));
}

TEST(SelectTest, calls_that_were_never_sent_are_not_counted_as_sent) {
  SelectHosts net(2, {.channels = 1, .queue = 2});
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  net.servers[1]->at_once = false;
  TestCall without_time;
  net.call(0, session, without_time, "no time", 0ms);
  EXPECT_EQ(without_time.outcome, Errc::call_aborted);
  EXPECT_EQ(SelectHosts::statistics(*net.selects[0]).sent, 0U);
  TestCall sent;
  TestCall waits_in_vain;
  TestCall waits;
  TestCall without_room;
  net.call(0, session, sent, "sent");
  net.call(0, session, waits_in_vain, "waits in vain", 10ms);
  net.call(0, session, waits, "waits");
  net.call(0, session, without_room, "no room");
  EXPECT_EQ(without_room.outcome, Errc::limit_reached);
  net.world.run_for(20ms);
  EXPECT_EQ(waits_in_vain.outcome, Errc::call_aborted);
  EXPECT_EQ(SelectHosts::statistics(*net.selects[0]).sent, 1U);
  net.servers[1]->answer_next();
  net.world.run_for(1ms);
  EXPECT_EQ(SelectHosts::statistics(*net.selects[0]).sent, 2U);
  EXPECT_EQ(net.servers[1]->executed, (std::vector<std::string>{"sent", "waits"}));
}

TEST(SelectTest, calls_can_be_cancelled_while_they_wait_and_when_they_are_sent) {
  SelectHosts net(2, {.channels = 1});
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  net.servers[1]->at_once = false;
  TestCall calls[4];
  for (int i = 0; i < 4; ++i) net.call(0, session, calls[i], std::to_string(i));
  net.cancel(0, session, calls[0]);
  net.cancel(0, session, calls[2]);
  net.cancel(0, session, calls[2]);
  for (int i = 0; i < 3; ++i) {
    net.world.run_for(10ms);
    if (!net.servers[1]->pending.empty()) net.servers[1]->answer_next();
  }
  net.world.run_for(10ms);
  EXPECT_EQ(net.servers[1]->executed, (std::vector<std::string>{"0", "1", "3"}));
  EXPECT_EQ(calls[0].completions, 0);
  EXPECT_EQ(calls[1].reply, "1");
  EXPECT_EQ(calls[2].completions, 0);
  EXPECT_EQ(calls[3].reply, "3");
}

TEST(SelectTest, a_server_that_lets_go_of_a_request_without_a_reply_fails_the_call) {
  SelectHosts net(2, {.channels = 1});
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  net.servers[1]->at_once = false;
  TestCall call;
  net.call(0, session, call, "x");
  net.world.run_for(1ms);
  net.servers[1]->pending.clear();
  net.world.run_for(100ms);
  EXPECT_EQ(call.outcome, Errc::call_failed);
  EXPECT_EQ(SelectHosts::statistics(*net.selects[1]).sessions, 0U);
}

TEST(SelectTest, a_host_that_cannot_be_reached_fails_the_open) {
  SimHosts net(2, 2);
  auto channel = make_channel(net[0].host(), "channel", net[0].ethernet());
  auto select = make_select(net[0].host(), "select", *channel);
  SinkProtocol high(net[0].host());
  ParticipantSet participants;
  participants.remote.host = net.address(1);
  EXPECT_EQ(select->open(high, participants).code(), Errc::host_unreachable);
  EXPECT_EQ(select->open(high, {}).code(), Errc::invalid_argument);
}

TEST(SelectTest, a_dead_server_fails_all_calls_even_those_that_wait) {
  SelectHosts net(2, {.channels = 2});
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  TestCall warm;
  net.call(0, session, warm, "x");
  net.world.run_for(1ms);
  net.world.set_group(net[1], 1);
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 6; ++i) {
    calls.push_back(std::make_unique<TestCall>());
    net.call(0, session, *calls.back(), "x");
  }
  net.world.run_for(60s);
  for (const auto& call : calls) {
    EXPECT_EQ(call->completions, 1);
    EXPECT_EQ(call->outcome, Errc::call_failed);
  }
}

TEST(SelectTest, requests_that_are_not_select_s_fail_and_replies_that_are_not_either) {
  PacketWire wire(1);
  SlowServer high(wire[0].host);
  // A transaction protocol whose peer is the test.
  class Stub final : public Protocol {
   public:
    explicit Stub(Host& host) : Protocol(host, "stub") {}
    class End final : public Session {
     public:
      using Session::Session;
      void call(Message request, Transaction& transaction, Duration /*timeout*/) noexcept override {
        request.clear();
        transaction.completed(Errc::ok, static_cast<Stub&>(protocol()).bytes());
      }
      void reply(Message message) noexcept override { static_cast<Stub&>(protocol()).replied = text_of(message); }
    };
    Result<SessionRef> open(Protocol& up, const ParticipantSet& participants) override {
      return SessionRef(new End(*this, up, participants));
    }
    Status open_enable(Protocol& /*up*/, const ParticipantSet& /*participants*/) override { return {}; }
    [[nodiscard]] Message bytes() const { return Message::copy_of(host().pool(), std::as_bytes(std::span(answer))); }
    std::string answer;
    std::string replied = "nothing";
  };
  Stub stub(wire[0].host);
  auto select = make_select(wire[0].host, "select", stub);
  ParticipantSet participants;
  participants.remote.host = PacketWire::address(0);
  participants.local.command = 7;
  EXPECT_TRUE(select->open_enable(high, participants));
  SessionRef end(new Stub::End(stub, *select, {}));
  for (const std::string request : {"", "\1", "\1\0\7", "\2\0\7\0", "\0\0\7\0"}) {
    stub.answer = request;
    select->call_demux(*end, stub.bytes());
    EXPECT_EQ(stub.replied, "");
    stub.replied = "nothing";
  }
  EXPECT_TRUE(high.executed.empty());
  SessionRef session = *select->open(high, participants);
  const std::pair<std::string, Errc> replies[] = {
      {"", Errc::call_failed},
      {std::string("\2\0\7", 3), Errc::call_failed},
      {std::string("\1\0\7\0", 4), Errc::call_failed},
      {std::string("\2\0\7\0data", 8), Errc::ok},
      {std::string("\2\0\7\1", 4), Errc::bad_procedure},
      {std::string("\2\0\7\2", 4), Errc::limit_reached},
      {std::string("\2\0\7\3", 4), Errc::call_failed},
      {std::string("\2\0\7\4", 4), Errc::host_unreachable},
      {std::string("\2\0\7\377", 4), Errc::call_failed},
  };
  for (const auto& [bytes, outcome] : replies) {
    stub.answer = bytes;
    TestCall call;
    session->call(Message(wire[0].host.pool()), call, kNoLimit);
    EXPECT_EQ(call.outcome, outcome);
    EXPECT_EQ(call.reply, outcome == Errc::ok ? "data" : "");
  }
}

TEST(SelectTest, nothing_is_left_when_all_sessions_are_closed) {
  SelectHosts net(2);
  net.serve(1, 7);
  net.servers[1]->at_once = false;
  TestCall calls[5];
  for (auto& call : calls) net.call(0, net.open(0, 1, 7), call, "x");
  net.world.run_for(1ms);
  while (!net.servers[1]->pending.empty()) net.servers[1]->answer_next();
  net.world.run_for(1ms);
  net.sessions.clear();
  net.world.run_for(5min);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(SelectHosts::statistics(*net.selects[i]).sessions, 0U);
    EXPECT_EQ(SelectHosts::statistics(*net.selects[i]).state, 0U);
    EXPECT_EQ(SelectHosts::statistics(*net.channels[i]).sessions, 0U);
    EXPECT_EQ(SelectHosts::statistics(*net.channels[i]).state, 0U);
    EXPECT_EQ(net[i].pool().in_use(), 0U);
  }
}

TEST(SelectTest, its_kind_checks_its_options) {
  const ProtocolKind kind = select_kind();
  PacketWire wire(1);
  InstanceParts parts{wire[0].host, "select", {&wire[0].end}, {}};
  EXPECT_TRUE(kind.make(parts));
  parts.options.set("channels", "0");
  EXPECT_EQ(kind.make(parts).code(), Errc::invalid_argument);
}

TEST(SelectTest, a_call_that_is_too_long_is_not_counted_as_sent) {
  SelectHosts net(2);
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  TestCall too_long;
  TestCall fits;
  net.call(0, session, too_long, std::string(2000, 'x'));
  EXPECT_EQ(too_long.outcome, Errc::message_too_long);
  EXPECT_EQ(SelectHosts::statistics(*net.selects[0]).sent, 0U);
  net.call(0, session, fits, "short");
  EXPECT_EQ(SelectHosts::statistics(*net.selects[0]).sent, 1U);
  net.world.run_for(1s);
}

TEST(SelectTest, a_reply_that_the_link_no_longer_carries_loses_its_call_and_the_next_one_has_its_channel) {
  SelectHosts net(2, {.channels = 1});
  net.serve(1, 7);
  Session& session = net.open(0, 1, 7);
  net.servers[1]->at_once = false;
  TestCall lost;
  TestCall next;
  net.call(0, session, lost, std::string(1000, 'x'));
  net.call(0, session, next, "short");
  net.world.run_for(1ms);
  static_cast<SimEthernet&>(net[1].ethernet()).set_mtu(600);
  net.servers[1]->at_once = true;
  net.servers[1]->answer_next();
  net.world.run_for(1ms);
  EXPECT_EQ(lost.outcome, Errc::call_lost);
  EXPECT_EQ(next.outcome, Errc::ok);
}

}  // namespace
}  // namespace lrpc::netrpc
