// The storm's checker detects each flaw of NaiveRpc.
#include <gtest/gtest.h>

#include "length.h"
#include "naive_rpc.h"
#include "netrpc/sim/devices.h"
#include "netrpc/sim/storm.h"
#include "netrpc/sim/storm_bound.h"
#include "netrpc/sim/storm_stacks.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

StormOptions small_storm() {
  StormOptions options;
  options.calls = 3000;
  options.hosts = 20;
  options.link.loss = 0.05;
  options.link.duplicate = 0.05;
  options.link.reorder = 0.1;
  return options;
}
StormReport run(const StormOptions& options, Flaw flaw) {
  return run_storm(options, [flaw](SimHost& host, std::vector<Protocol*>& all) -> Protocol& {
    Protocol& ip = host.ip();
    NaiveRpc& naive = host.add<NaiveRpc>(ip, flaw);
    all = {&naive, &ip};
    return naive;
  });
}
bool any_says(const StormReport& report, std::string_view what) {
  for (const std::string& violation : report.violations)
    if (violation.find(what) != std::string::npos) return true;
  return false;
}
std::string all_of(const StormReport& report) {
  std::string text;
  for (const std::string& violation : report.violations) text += violation + '\n';
  return text;
}

TEST(StormCheckerTest, finds_nothing_wrong_with_a_protocol_whose_flaw_does_not_show) {
  const StormReport report = run(small_storm(), Flaw::none);
  EXPECT_EQ(report.violation_count, 0U) << all_of(report);
  EXPECT_EQ(report.answered, 3000U);
  EXPECT_EQ(report.executed, 3000U);
  EXPECT_GT(report.wires.lost, 0U);
  EXPECT_GT(report.wires.duplicated, 0U);
}

TEST(StormCheckerTest, finds_a_server_that_executes_a_request_as_often_as_it_comes) {
  const StormReport report = run(small_storm(), Flaw::at_least_once);
  EXPECT_GT(report.violation_count, 10U);
  EXPECT_TRUE(any_says(report, "was executed 2 times")) << all_of(report);
}

TEST(StormCheckerTest, finds_a_server_that_executes_again_after_a_reboot) {
  StormOptions options = small_storm();
  options.calls = 20'000;
  options.faults.crash_every = 2ms;
  options.faults.longest_down = 20ms;
  const StormReport report = run(options, Flaw::none);
  EXPECT_GT(report.crashes, 5U);
  EXPECT_GT(report.violation_count, 0U);
  EXPECT_TRUE(any_says(report, "was executed 2 times")) << all_of(report);
}

TEST(StormCheckerTest, finds_a_call_that_hangs) {
  const StormReport report = run(small_storm(), Flaw::impatient_never);
  EXPECT_TRUE(any_says(report, "hangs")) << all_of(report);
}

TEST(StormCheckerTest, finds_a_protocol_that_never_sends_again) {
  for (const double loss : {0.05, 0.1, 0.3}) {
    StormOptions options = small_storm();
    options.link.loss = loss;
    const StormReport report = run(options, Flaw::sends_once);
    EXPECT_EQ(report.violation_count, 1U) << all_of(report);
    EXPECT_TRUE(any_says(report, "calls have failed")) << loss << all_of(report);
  }
}

TEST(StormCheckerTest, finds_a_protocol_that_gives_up_before_its_time) {
  for (const double loss : {0.1, 0.2}) {
    StormOptions options = small_storm();
    options.link.loss = loss;
    options.largest = 1000;  // of larger messages, more are lost than any number of tries explains
    const StormReport excused = run(options, Flaw::sends_five_times);
    EXPECT_EQ(excused.violation_count, 0U) << all_of(excused);
    options.tries = tries_of("select-channel-ip", options.timeout);
    const StormReport found = run(options, Flaw::sends_five_times);
    EXPECT_EQ(found.violation_count, 1U) << all_of(found);
    EXPECT_TRUE(any_says(found, "calls have failed")) << loss << all_of(found);
    const StormReport patient = run(options, Flaw::none);
    EXPECT_EQ(patient.violation_count, 0U) << all_of(patient);
  }
}

TEST(StormBoundTest, knows_how_often_each_stack_sends_what_a_call_needs_within_the_timeout) {
  EXPECT_EQ(tries_of("select-channel-ip", 2s), 9U);
  EXPECT_EQ(tries_of("mrpc-ip", 2s), 12U);
  EXPECT_EQ(tries_of("select-paired-udp", 2s), 3U);  // tries of its reply
  EXPECT_EQ(tries_of("sun-udp", 2s), 7U);
  EXPECT_EQ(tries_of("sun-channel-fragment-ip", 2s), 9U);
  EXPECT_EQ(tries_of("udp = UDP; paired = PAIRED(max_retry = 2) over udp;", 2s), 3U);
  EXPECT_EQ(tries_of("ip = IP; channel = CHANNEL(give_up = 100ms) over ip;", 2s), 5U);
}

TEST(StormCheckerTest, finds_a_caller_that_is_never_woken) {
  const StormReport report = run(small_storm(), Flaw::forgets_callers);
  EXPECT_TRUE(any_says(report, "hangs")) << all_of(report);
}

TEST(StormCheckerTest, finds_a_call_that_ends_long_after_its_timeout) {
  const StormReport report = run(small_storm(), Flaw::dawdles);
  EXPECT_TRUE(any_says(report, "has ended long after its timeout")) << all_of(report);
}

TEST(StormBoundTest, lets_no_call_fail_on_a_quiet_network_and_more_with_each_fault) {
  StormOptions options;
  EXPECT_LT(storm::most_failing(options, 0), 1.0 / 1000);
  const auto with = [&](auto change) {
    StormOptions worse = options;
    change(worse);
    return storm::most_failing(worse, 0);
  };
  const double lost_tenth = with([](auto& o) { o.link.loss = 0.1; });
  EXPECT_GT(lost_tenth, 0.01);
  EXPECT_LT(lost_tenth, 0.2);
  EXPECT_GT(with([](auto& o) { o.link.loss = 0.3; }), lost_tenth);
  EXPECT_LT(with([](auto& o) { o.link.loss = 0.3; }), 0.6);
  EXPECT_LT(with([](auto& o) { o.link.duplicate = o.link.reorder = 0.5; }), 1.0 / 1000);
  EXPECT_LT(with([](auto& o) { o.faults.partition_every = std::chrono::milliseconds(300); }), 0.01);
  // A crash fails the calls that other hosts have under way to the crashed one: 32 on average.
  EXPECT_NEAR(storm::most_failing(options, 100), 100 * 32.0 / static_cast<double>(options.calls), 0.01);
}

TEST(StormCheckerTest, finds_a_wrong_reply) {
  const StormReport report = run(small_storm(), Flaw::wrong_bytes);
  EXPECT_TRUE(any_says(report, "the reply has other bytes")) << all_of(report);
}

TEST(StormCheckerTest, finds_state_that_is_left_behind) {
  const StormReport report = run(small_storm(), Flaw::remembers);
  EXPECT_TRUE(any_says(report, "naive keeps")) << all_of(report);
}

TEST(StormCheckerTest, one_seed_gives_one_storm) {
  StormOptions options = small_storm();
  if (!testing_lrpc::long_tests()) options.calls = 1000;
  options.faults = {.crash_every = 3ms, .pause_every = 3ms, .partition_every = 10ms, .drift_every = 1ms};
  const auto trace_of = [&](std::uint64_t seed) {
    std::string trace;
    options.seed = seed;
    options.trace = [&](std::string_view line) { trace.append(line) += '\n'; };
    (void)run(options, Flaw::none);
    return trace;
  };
  const std::uint64_t seed = testing_lrpc::long_tests() ? 5 : testing_lrpc::test_seed();
  SCOPED_TRACE("LRPC_TEST_SEED=" + std::to_string(seed));
  const std::string once = trace_of(seed);
  EXPECT_TRUE(once == trace_of(seed));
  EXPECT_FALSE(once == trace_of(seed + 1));
  for (const char* word : {"crashes", "boots", "pauses", "falls into", "is whole again", "is executed", "ends: "})
    EXPECT_NE(once.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace lrpc::netrpc
