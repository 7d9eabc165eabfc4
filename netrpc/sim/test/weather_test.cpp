// One kind of fault at a time, then all together, each at its worst: PAIRED, and Sun RPC over each layer that can carry
// it. CHANNEL and M_RPC have similar tests in their own folders.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "length.h"
#include "netrpc/sim/storm.h"
#include "netrpc/sim/storm_stacks.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

struct Weather {
  std::string_view name;
  SimLink link;
  FaultOptions faults;
  double answered;  ///< The smallest share of calls that PAIRED must answer.
};

const Weather kWeathers[] = {
    {"loss", {.loss = 0.3}, {}, 0.95},
    {"duplication", {.duplicate = 0.2, .reorder = 0.1}, {}, 1},
    {"reordering", {.jitter = 5ms, .reorder = 0.3, .reorder_delay = 100ms}, {}, 0.95},
    {"late duplicates", {.duplicate = 0.2, .reorder = 0.2, .reorder_delay = 10s}, {.crash_every = 20ms}, 0.5},
    {"crashes", {.duplicate = 0.2}, {.crash_every = 10ms}, 0.8},
    {"partitions", {.duplicate = 0.2}, {.partition_every = 200ms}, 0.9},
    {"all of it",
     {.loss = 0.3, .duplicate = 0.2, .reorder = 0.2, .reorder_delay = 200ms},
     {.crash_every = 20ms, .pause_every = 50ms, .partition_every = 300ms, .drift_every = 5ms},
     0.5},
};

struct WeatheredStack {
  std::string_view name;  ///< One of storm_stacks().
  double share;           ///< Relative to `answered`: the share that this stack must answer.
};
/// IP cuts long UDP messages; losing one fragment loses the message.
const WeatheredStack kStacks[] = {
    {"select-paired-udp", 1}, {"sun-udp", 0.95}, {"sun-fragment-ip", 1}, {"sun-channel-fragment-ip", 1}};

class WeatherTest : public testing::TestWithParam<std::tuple<WeatheredStack, Weather>> {};

/// REQUEST_REPLY promises less: for its stacks everything but the number of executions is checked.
TEST_P(WeatherTest, no_call_is_executed_twice_every_call_ends_and_nothing_is_left) {
  const auto& [stack, weather] = GetParam();
  const Result<ComposeStack> compose = stack_of(stack.name, simulated_kinds());
  ASSERT_TRUE(compose) << compose.error().message();
  StormOptions options;
  options.seed = testing_lrpc::test_seed();
  options.calls = testing_lrpc::long_tests() ? 20'000 : 3'000;
  options.hosts = 40;
  options.segments = 1;
  options.repeats = repeats_calls(stack.name);
  options.tries = tries_of(stack.name, options.timeout);
  options.link = weather.link;
  options.faults = weather.faults;
  const StormReport report = run_storm(options, *compose);
  std::string violations = "LRPC_TEST_SEED=" + std::to_string(options.seed);
  for (const std::string& violation : report.violations) violations += '\n' + violation;
  EXPECT_EQ(report.violation_count, 0U) << violations;
  EXPECT_GE(static_cast<double>(report.answered),
            stack.share * weather.answered * static_cast<double>(report.calls - report.abandoned))
      << violations;
}

INSTANTIATE_TEST_SUITE_P(Weathers, WeatherTest,
                         testing::Combine(testing::ValuesIn(kStacks), testing::ValuesIn(kWeathers)),
                         [](const auto& both) {
                           std::string name(std::get<0>(both.param).name);
                           name += "_in_";
                           name += std::get<1>(both.param).name;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace lrpc::netrpc
