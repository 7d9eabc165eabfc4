// Every stack in the storm: two hundred hosts that crash, and a network that loses, duplicates and reorders packets,
// and partitions.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "length.h"
#include "lrpc/netrpc/map.h"
#include "netrpc/protocols/auth/keys.h"
#include "netrpc/sim/storm.h"
#include "netrpc/sim/storm_stacks.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
using testing_lrpc::long_tests;
using testing_lrpc::test_seed;

/// The seeds of a test: the seed of this process; in a long run also the fixed ones in `always`.
std::vector<std::uint64_t> seeds(std::initializer_list<std::uint64_t> always) {
  std::vector<std::uint64_t> all{test_seed()};
  if (long_tests()) all.insert(all.end(), always);
  return all;
}
/// This number of calls in a long run, else a quarter of it.
std::uint64_t many(std::uint64_t calls) { return long_tests() ? calls : calls / 4; }

StormOptions bad_weather(std::uint64_t seed) {
  StormOptions options;
  options.seed = seed;
  options.calls = many(options.calls);
  options.link.loss = 0.1;
  options.link.duplicate = 0.05;
  options.link.reorder = 0.1;
  options.faults = {.crash_every = 20ms, .pause_every = 50ms, .partition_every = 300ms, .drift_every = 5ms};
  return options;
}
StormReport run(StormOptions options, std::string_view text) {
  options.repeats = repeats_calls(text);
  options.tries = tries_of(text, options.timeout);
  const Result<ComposeStack> stack = stack_of(text, simulated_kinds());
  EXPECT_TRUE(stack) << stack.error().message();
  return stack ? run_storm(options, *stack) : StormReport{};
}
std::string violations(const StormReport& report, const StormOptions& options, std::string_view stack) {
  std::string text = "LRPC_TEST_SEED=" + std::to_string(options.seed) + " (see lrpc-netsim --stack " +
                     std::string(stack) + " --trace):\n";
  for (const std::string& violation : report.violations) text += violation + '\n';
  return text;
}

class StormTest : public testing::TestWithParam<NamedStack> {
 protected:
  StormReport passes(const StormOptions& options) {
    StormReport report = run(options, GetParam().text);
    EXPECT_EQ(report.violation_count, 0U) << violations(report, options, GetParam().name);
    EXPECT_EQ(report.answered + report.failed + report.aborted + report.not_executed + report.abandoned, options.calls);
    return report;
  }
};

TEST_P(StormTest, every_call_is_answered_once_on_a_quiet_network) {
  StormOptions options;
  options.calls = many(5000);
  const StormReport report = passes(options);
  EXPECT_EQ(report.answered, options.calls);
  EXPECT_EQ(report.executed, options.calls);
}

TEST_P(StormTest, no_call_is_executed_twice_hangs_or_leaves_anything_behind_in_bad_weather) {
  for (const std::uint64_t seed : seeds({1, 2, 3})) {
    StormOptions options = bad_weather(seed);
    if (!long_tests()) options.calls *= 3;  // so that every kind of fault occurs
    const StormReport report = passes(options);
    EXPECT_GT(report.answered, report.calls / 2);
    EXPECT_GT(report.crashes, 0U);
    EXPECT_GT(report.partitions, 0U);
    EXPECT_GT(report.wires.lost, 0U);
    EXPECT_GT(report.wires.duplicated, 0U);
  }
}

TEST_P(StormTest, packets_that_are_under_way_for_seconds_over_reboots_do_no_harm) {
  for (const std::uint64_t seed : seeds({4})) {
    StormOptions options = bad_weather(seed);
    options.link.reorder_delay = 10s;
    const StormReport report = passes(options);
    EXPECT_GT(report.answered, report.calls / 2);
  }
}

TEST_P(StormTest, flipped_bits_neither_hang_a_call_nor_leave_anything_behind) {
  for (const std::uint64_t seed : seeds({5})) {
    StormOptions options = bad_weather(seed);
    options.calls = many(10'000);
    options.link.corrupt = 0.1;
    (void)passes(options);
  }
}

TEST_P(StormTest, few_hosts_that_crash_all_the_time_keep_their_promises) {
  for (const std::uint64_t seed : seeds({6})) {
    StormOptions options = bad_weather(seed);
    options.hosts = 3;
    options.peers = 2;
    options.segments = 2;
    options.at_once = 20;
    options.link.reorder_delay = 200ms;
    (void)passes(options);
  }
}

TEST_P(StormTest, one_seed_gives_one_storm) {
  StormOptions options = bad_weather(test_seed());
  options.calls = many(2000);
  options.hosts = 50;
  const auto trace_of = [&] {
    std::uint64_t hash = 0;
    options.trace = [&](std::string_view line) { hash = mix(hash, std::hash<std::string_view>()(line)); };
    (void)run(options, GetParam().text);
    return hash;
  };
  const std::uint64_t once = trace_of();
  EXPECT_EQ(once, trace_of()) << "seed " << options.seed;
  ++options.seed;
  EXPECT_NE(once, trace_of());
}

INSTANTIATE_TEST_SUITE_P(Stacks, StormTest, testing::ValuesIn(storm_stacks()), [](const auto& stack) {
  std::string name(stack.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(StormLimitsTest, a_channel_that_forgets_before_its_packets_have_died_is_found_out) {
  for (const std::uint64_t seed : seeds({1})) {
    StormOptions options = bad_weather(seed);
    if (!long_tests()) options.calls = 1000;
    options.link.duplicate = 0.2;
    options.link.reorder_delay = 10s;
    const StormReport report = run(options, R"(
ip      = IP;
channel = CHANNEL(packet_life = 10ms, give_up = 5ms, reply_life = 10ms) over ip;
select  = SELECT over channel;
)");
    EXPECT_GT(report.violation_count, 0U) << "seed " << seed;
    EXPECT_TRUE(std::any_of(report.violations.begin(), report.violations.end(), [](const std::string& text) {
      return text.find("was executed") != std::string::npos;
    })) << violations(report, options, "the one above");
  }
}

/// A stack with AUTH below CHANNEL, and its key file.
class StormAuthTest : public testing::Test {
 protected:
  StormAuthTest() {
    std::ofstream(path_) << "* " << auth::generate_key() << '\n';
    std::filesystem::permissions(path_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    stack_ = "eth = ETH; ip = IP; vip = VIP over eth, ip; fragment = FRAGMENT over vip;\nauth = AUTH(keys = \"" +
             path_ + "\") over fragment; channel = CHANNEL over auth; select = SELECT over channel;";
  }
  ~StormAuthTest() override { std::filesystem::remove(path_); }
  std::string path_ = testing::TempDir() + "storm_keys." + std::to_string(getpid());
  std::string stack_;
};

TEST_F(StormAuthTest, every_call_is_answered_once_on_a_quiet_network) {
  StormOptions options;
  options.calls = many(5000);
  const StormReport report = run(options, stack_);
  EXPECT_EQ(report.violation_count, 0U) << violations(report, options, stack_);
  EXPECT_EQ(report.answered, options.calls);
}

TEST_F(StormAuthTest, flipped_bits_in_bad_weather_change_no_bytes_and_execute_nothing_twice) {
  for (const std::uint64_t seed : seeds({10})) {
    StormOptions options = bad_weather(seed);
    options.calls = many(10'000);
    options.link.corrupt = 0.05;
    options.finds_corruption = true;
    const StormReport report = run(options, stack_);
    EXPECT_EQ(report.violation_count, 0U) << violations(report, options, stack_);
    EXPECT_GT(report.answered, options.calls / 2);
    EXPECT_GT(report.wires.corrupted, 0U);
  }
}

TEST(StormTableTest, calls_keep_their_promises_over_vip_with_a_table_of_hosts_which_is_all_that_stays) {
  const std::string_view stack = R"(
eth   = ETH;
ip    = IP;
hosts = VIPHOSTS over eth;
vip   = VIP over eth, ip, hosts;
mrpc  = M_RPC over vip;
)";
  for (const std::uint64_t seed : seeds({9})) {
    StormOptions options = bad_weather(seed);
    options.hosts = 40;
    const StormReport report = run(options, stack);
    EXPECT_GT(report.answered, report.calls / 2) << "seed " << seed;
    // Advertisements keep the table filled while hosts live, and the table holds one Ethernet session. So both may
    // stay.
    for (const std::string& violation : report.violations)
      EXPECT_TRUE(violation.find("hosts keeps 0 sessions") != std::string::npos ||
                  violation.find("eth keeps 1 sessions and 0 records") != std::string::npos)
          << violations(report, options, stack);
  }
}

/// Partitions make hosts be forgotten and heard again, so that sessions change between paths.
TEST(StormTableTest, calls_keep_their_promises_while_paths_change_all_the_time) {
  const std::string_view stack = R"(
eth      = ETH;
ip       = IP;
hosts    = VIPHOSTS(lifetime = 20ms) over eth;
vipaddr  = VIPADDR over eth, ip, hosts;
fragment = FRAGMENT over vipaddr;
vipsize  = VIPSIZE over vipaddr, fragment;
channel  = CHANNEL over vipsize;
select   = SELECT over channel;
)";
  for (const std::uint64_t seed : seeds({9})) {
    StormOptions options = bad_weather(seed);
    options.hosts = 20;
    options.calls /= 4;
    const StormReport report = run(options, stack);
    EXPECT_GT(report.answered, report.calls / 2) << "seed " << seed;
    for (const std::string& violation : report.violations)
      EXPECT_TRUE(violation.find("hosts keeps 0 sessions") != std::string::npos ||
                  violation.find("eth keeps 1 sessions and 0 records") != std::string::npos)
          << violations(report, options, stack);
  }
}

/// All hosts open sessions to each other while they hear each other, and no Ethernet maps a device address to a host.
TEST(StormStrangersTest, calls_keep_their_promises_where_nobody_knows_whose_an_ethernet_address_is) {
  for (const std::size_t which : {0U, 1U}) {
    std::string stack(storm_stacks()[which].text);
    stack.replace(stack.find("= ETH;"), 6, "= ETH(reverse = 0);");
    StormOptions quiet;
    quiet.calls = many(5000);
    // VIPSIZE cannot send a large reply to a host that it does not know and that this host has not opened to.
    quiet.refused = which == 0 ? 0 : 0.1;
    const StormReport calm = run(quiet, stack);
    EXPECT_EQ(calm.violation_count, 0U) << violations(calm, quiet, stack);
    EXPECT_GE(calm.answered, which == 0 ? quiet.calls : quiet.calls * 9 / 10);
    for (const std::uint64_t seed : seeds({11})) {
      StormOptions options = bad_weather(seed);
      options.refused = quiet.refused;
      const StormReport report = run(options, stack);
      EXPECT_EQ(report.violation_count, 0U) << violations(report, options, stack);
      EXPECT_GT(report.answered, report.calls / 2);
    }
  }
}

}  // namespace
}  // namespace lrpc::netrpc
