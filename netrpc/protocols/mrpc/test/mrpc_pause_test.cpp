// Pauses of the client's machine: nothing runs there, but the clock advances.
#include <gtest/gtest.h>

#include "netrpc/protocols/channel/test/packet_wire.h"
#include "netrpc/protocols/mrpc/protocol.h"

namespace lrpc::netrpc::mrpc {
namespace {

using namespace std::chrono_literals;

class MrpcPauseTest : public testing::Test {
 protected:
  static constexpr std::uint16_t kCommand = 7;
  static constexpr Settings kPatient{.give_up = 30s};

  MrpcPauseTest() {
    ParticipantSet participants;
    participants.local.command = kCommand;
    {
      const Shepherd inside(wire[1].host.monitor());
      EXPECT_TRUE(served.open_enable(server, participants));
    }
    participants.remote.host = PacketWire::address(1);
    participants.remote.command = kCommand;
    const Shepherd inside(wire[0].host.monitor());
    session = *client.open(user, participants);
  }
  ~MrpcPauseTest() override { session = {}; }
  void start(TestCall& call, std::string_view text) {
    const Shepherd inside(wire[0].host.monitor());
    session->call(Message::copy_of(wire[0].host.pool(), std::as_bytes(std::span(text))), call, kNoLimit);
  }
  void warm_up() {
    TestCall call;
    start(call, "warm");
    wire.deliver_all();
    ASSERT_EQ(call.outcome, Errc::ok);
  }
  /// All packets on the wire are lost.
  void stand_still(Duration time) {
    wire.packets.clear();
    wire.stand_still(time);
  }
  void run(TestCall& call) {
    for (int i = 0; i < 60'000 && !call.done(); ++i) {
      wire.deliver_all();
      wire.pass(1ms, 1ms);
    }
  }
  [[nodiscard]] auto executions(std::string_view text) const { return std::ranges::count(server.executed, text); }

  PacketWire wire;
  Monolithic client{wire[0].host, "mrpc", wire[0].end, kPatient};
  Monolithic served{wire[1].host, "mrpc", wire[1].end, kPatient};
  SinkProtocol user{wire[0].host};
  SlowServer server{wire[1].host};
  SessionRef session;
};

TEST_F(MrpcPauseTest, a_call_outlives_one) {
  warm_up();
  TestCall call;
  start(call, "reply lost");
  wire.deliver_next();
  stand_still(55s);
  EXPECT_FALSE(call.done()) << "the server has been asked nothing, and so was not silent";
  run(call);
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(executions("reply lost"), 1);
}

TEST_F(MrpcPauseTest, a_question_for_the_life_of_the_peer_outlives_one) {
  TestCall call;
  start(call, "first");
  stand_still(55s);
  EXPECT_FALSE(call.done());
  run(call);
  EXPECT_EQ(call.outcome, Errc::ok);
}

TEST_F(MrpcPauseTest, one_has_no_call_executed_that_the_server_may_have_forgotten) {
  warm_up();
  TestCall call;
  start(call, "once");
  wire.deliver_next();
  ASSERT_EQ(executions("once"), 1);
  for (int i = 0; i < 20; ++i) stand_still(60s);
  EXPECT_FALSE(call.done());
  run(call);
  EXPECT_EQ(call.outcome, Errc::call_failed);
  EXPECT_EQ(executions("once"), 1);
}

/// The server says that it is at work. That packet waits in the client's machine for the whole pause.
TEST_F(MrpcPauseTest, an_old_sign_of_life_has_no_call_executed_again) {
  warm_up();
  server.at_once = false;
  TestCall call;
  start(call, "late");
  wire.deliver_next();
  ASSERT_EQ(executions("late"), 1);
  for (int i = 0; i < 1000 && wire.packets.empty(); ++i) wire.pass(1ms, 1ms);
  wire.deliver_next();  // the question
  ASSERT_FALSE(wire.packets.empty());
  const auto at_work = wire.packets.front();
  server.answer_next();
  for (int i = 0; i < 20; ++i) stand_still(60s);
  wire.packets.push_front(at_work);
  run(call);
  EXPECT_EQ(call.outcome, Errc::call_failed);
  EXPECT_EQ(executions("late"), 1);
}

TEST_F(MrpcPauseTest, a_silence_ends_a_call_also_after_one) {
  warm_up();
  TestCall call;
  start(call, "silence");
  stand_still(100s);
  wire.cut_off(28s);
  EXPECT_FALSE(call.done());
  wire.cut_off(3s);
  EXPECT_EQ(call.outcome, Errc::call_failed);
}

}  // namespace
}  // namespace lrpc::netrpc::mrpc
