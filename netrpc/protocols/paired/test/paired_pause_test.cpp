// PAIRED: pauses of the client's own machine, in which its server goes on, and may forget what it has executed.
#include "netrpc/protocols/paired/test/paired_pair.h"

namespace lrpc::netrpc::paired {
namespace {

using namespace std::chrono_literals;

struct PairedPauses : testing::Test {
  PairedPauses() { pair.expect_ok("warm"); }
  /// Only the server's timers run. What is on the wire is lost.
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
    client_stands_still(arrives ? 5s : 60s);  // its server gives a reply up that nobody takes
    run(call);
    EXPECT_EQ(call.outcome, Errc::ok);
  }
  EXPECT_EQ(pair.executions("x"), 2U);
}

/// The server has acknowledged nothing when its client stands still, but it is at work, and remembers.
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

}  // namespace
}  // namespace lrpc::netrpc::paired
