// M_RPC in the storm: hundreds of hosts and every kind of fault. What calls promise is checked.
#include <gtest/gtest.h>

#include "length.h"
#include "netrpc/protocols/mrpc/protocol.h"
#include "netrpc/sim/devices.h"
#include "netrpc/sim/storm.h"
#include "netrpc/sim/storm_stacks.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
using testing_lrpc::long_tests;
using testing_lrpc::test_seed;

StormReport run(StormOptions options, Medium medium, mrpc::Settings settings = {}) {
  options.tries = tries_of("mrpc-ip", options.timeout);
  return run_storm(options, [=](SimHost& host, std::vector<Protocol*>& all) -> Protocol& {
    Protocol& device = medium == Medium::ethernet ? host.ethernet() : host.ip();
    auto& mrpc = host.add<mrpc::Monolithic>("mrpc", device, settings);
    all = {&mrpc, &device};
    return mrpc;
  });
}
std::string text_of(const StormReport& report) {
  std::string text;
  for (const std::string& violation : report.violations) text += violation + '\n';
  return text;
}

TEST(MrpcStormTest, on_a_perfect_wire_every_call_is_answered_and_nothing_is_sent_again) {
  StormOptions options;
  options.calls = 5000;
  options.hosts = 20;
  const StormReport report = run(options, Medium::ip);
  EXPECT_EQ(report.violation_count, 0U) << text_of(report);
  EXPECT_EQ(report.answered, report.calls);
  EXPECT_EQ(report.executed, report.calls);
}

TEST(MrpcStormTest, calls_over_a_lossy_doubling_reordering_ethernet_are_executed_at_most_once) {
  StormOptions options;
  options.seed = long_tests() ? 1 : test_seed();
  SCOPED_TRACE("LRPC_TEST_SEED=" + std::to_string(options.seed));
  if (!long_tests()) options.calls = 5000;
  options.segments = 1;
  options.link = {.latency = 20us, .jitter = 50us, .loss = 0.05, .duplicate = 0.05, .reorder = 0.1};
  const StormReport report = run(options, Medium::ethernet);
  EXPECT_EQ(report.violation_count, 0U) << text_of(report);
  EXPECT_EQ(report.answered + report.aborted, report.calls);
  EXPECT_GT(report.answered, report.calls * 99 / 100);
}

TEST(MrpcStormTest, crashes_partitions_and_pauses_never_make_a_call_run_twice_or_hang_or_leave_anything_behind) {
  std::uint64_t answered = 0;
  std::uint64_t calls = 0;
  std::uint64_t crashes = 0;
  std::vector<std::uint64_t> seeds{test_seed()};
  if (long_tests()) seeds.insert(seeds.end(), {1, 2, 3});
  for (const std::uint64_t seed : seeds) {
    StormOptions options;
    options.seed = seed;
    options.calls = 10'000;
    options.link = {.latency = 20us, .jitter = 50us, .loss = 0.02, .duplicate = 0.03, .reorder = 0.1};
    options.faults.crash_every = 2ms;
    options.faults.longest_down = 50ms;
    options.faults.pause_every = 5ms;
    options.faults.partition_every = 100ms;
    options.faults.drift_every = 10ms;
    const StormReport report = run(options, Medium::ip);
    EXPECT_EQ(report.violation_count, 0U) << "LRPC_TEST_SEED=" << seed << '\n' << text_of(report);
    answered += report.answered;
    calls += report.calls;
    crashes += report.crashes;
  }
  EXPECT_GT(crashes, 5 * seeds.size());
  EXPECT_GT(answered, calls / 2);
}

TEST(MrpcStormTest, sequence_numbers_wrap_in_the_middle_of_a_storm) {
  StormOptions options;
  options.calls = 8000;
  options.hosts = 20;
  options.link = {.loss = 0.05, .duplicate = 0.05, .reorder = 0.1};
  mrpc::Settings settings;
  settings.sequence = 0xffffff80;
  const StormReport report = run(options, Medium::ip, settings);
  EXPECT_EQ(report.violation_count, 0U) << text_of(report);
  EXPECT_GT(report.answered, report.calls * 99 / 100);
}

}  // namespace
}  // namespace lrpc::netrpc
