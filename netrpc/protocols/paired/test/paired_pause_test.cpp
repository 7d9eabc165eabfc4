// PAIRED: pauses of the client's machine. The server goes on meanwhile, and may forget what it has executed.
#include "netrpc/protocols/paired/test/paired_pair.h"

namespace lrpc::netrpc::paired {
namespace {

using namespace std::chrono_literals;

struct PairedPauses : testing::Test {
  PairedPauses() { pair.expect_ok("warm"); }
  /// Only the server's timers run. Packets on the wire are lost.
  void client_stands_still(Duration time) {
    for (Duration done{}; done < time; done += 100ms) {
      pair.wire.packets.clear();
      pair.wire.clock.time += 100ms;
      const Shepherd inside(pair.wire[1].host.monitor());
      pair.wire[1].host.events().run_due();
    }
    pair.wire.packets.clear();
  }
  void run(const TestCall& call) {
    for (int i = 0; i < 60'000 && !call.done(); ++i) {
      pair.wire.deliver_all();
      pair.wire.pass(1ms, 1ms);
    }
  }
  PairedPair pair;
};

TEST_F(PairedPauses, have_no_request_executed_that_the_server_may_have_forgotten) {
  for (const std::size_t size : {1U, 3000U}) {
    TestCall call;
    const std::string once(size, 'o');
    pair.call(call, once);
    while (pair.executions(once) == 0) pair.arrives();
    client_stands_still(10min);
    EXPECT_EQ(pair.statistics().sessions, 0U) << "it has forgotten the channel";
    EXPECT_FALSE(call.done());
    run(call);
    EXPECT_EQ(call.outcome, Errc::call_failed);
    EXPECT_EQ(pair.executions(once), 1U);
    pair.expect_ok("next");
  }
}

TEST_F(PairedPauses, that_are_short_end_no_call) {
  for (const bool arrives : {false, true}) {
    TestCall call;
    pair.call(call, "x");
    if (arrives) pair.arrives();
    client_stands_still(arrives ? 5s : 60s);  // the server gives up a reply that is not acknowledged
    run(call);
    EXPECT_EQ(call.outcome, Errc::ok);
  }
  EXPECT_EQ(pair.executions("x"), 2U);
}

/// The server has acknowledged nothing before the pause, but it still executes the call and remembers it.
TEST_F(PairedPauses, end_no_call_that_the_server_is_at_work_on) {
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "x");
  pair.arrives();
  client_stands_still(20min);
  for (int i = 0; i < 5'000; ++i) {
    pair.wire.deliver_all();
    pair.wire.pass(1ms, 1ms);
  }
  EXPECT_FALSE(call.done());
  pair.answer("done");
  run(call);
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(pair.executions("x"), 1U);
}

/// A copy of a request may still wait to be read then.
TEST_F(PairedPauses, of_the_server_make_it_forget_no_channel) {
  TestCall call;
  pair.call(call, "once");
  const PacketWire::Packet request = pair.wire.packets.at(0);
  run(call);
  // Until the channel has been swept once.
  for (Duration passed{}; passed < pair.options.no_activity; passed += 100ms) {
    pair.wire.pass(100ms, 1ms);
    pair.wire.deliver_all();
  }
  pair.wire.stand_still(pair.options.no_activity + 10s);
  EXPECT_EQ(pair.statistics().sessions, 1U);
  pair.wire.deliver(request);
  EXPECT_EQ(pair.executions("once"), 1U);
  pair.wire.pass(2 * pair.options.no_activity + 1s, 100ms);
  EXPECT_EQ(pair.statistics().sessions, 0U) << "it is forgotten later";
}

}  // namespace
}  // namespace lrpc::netrpc::paired
