// The eBPF program, where the build, the kernel and the user's privileges have it.
#include "processor_watch.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <future>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "idle_processors.h"
#include "lrpc/detail/shim/system/processor.h"
#include "seen_idle.h"

namespace lrpc::shim {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Some context switches, so that every processor that can be seen is seen.
void switch_around() {
  for (int i = 0; i < 200; ++i) std::this_thread::sleep_for(1ms);
}

/// Works on all processors, and returns the processor time that it took: for so long no processor was idle.
Seconds work_everywhere() {
  std::vector<std::future<std::uint64_t>> workers(std::max(1U, std::thread::hardware_concurrency()));
  for (auto& worker : workers) {
    worker = std::async(std::launch::async, [] {
      for (const auto end = Clock::now() + 50ms; Clock::now() < end;) continue;
      return thread_microseconds();
    });
  }
  Seconds worked{0};
  for (auto& worker : workers) worked += std::chrono::microseconds(worker.get());
  return worked;
}

/// A look at the watch, and when it was: somewhere between two moments, for whoever looks may have to wait for a
/// processor meanwhile.
struct Look {
  explicit Look(ProcessorWatch& watch) : idle(watch.idle()) {}
  /// Idle time since the look before, of all processors together: at least this long,
  [[nodiscard]] Seconds least_since(const Look& last) const { return idle * Seconds(before - last.after); }
  /// and at most this long, with a tolerance for the clocks.
  [[nodiscard]] Seconds most_since(const Look& last) const {
    return 1.01 * static_cast<double>(sysconf(_SC_NPROCESSORS_CONF)) * Seconds(after - last.before);
  }
  Clock::time_point before = Clock::now();
  double idle;
  Clock::time_point after = Clock::now();
};

/// For how many ticks a processor has been idle, by the kernel's own count. Nothing, if that is not to be had.
std::optional<std::uint64_t> idle_ticks(int processor) {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t user = 0;
    std::uint64_t nice = 0;
    std::uint64_t system = 0;
    std::uint64_t idle = 0;
    if (words >> name >> user >> nice >> system >> idle && name == "cpu" + std::to_string(processor)) return idle;
  }
  return std::nullopt;
}

#define ATTACH_OR_SKIP(watch)                                \
  auto attached = ProcessorWatch::attach();                  \
  if (!attached && attached.code() == Errc::not_supported) { \
    GTEST_SKIP() << attached.error().message();              \
  }                                                          \
  ASSERT_TRUE(attached) << attached.error().message();       \
  ProcessorWatch& watch = **attached /* NOLINT(bugprone-macro-parentheses): a name to declare */

TEST(IdleProcessors, counts_each_span_once_whenever_a_reader_looks) {
  const __u64 never_seen = 0;
  EXPECT_EQ(idle_ns_until(5'000, never_seen), 0U);
  const __u64 idle = state_after_switch(10'000, never_seen, 1);
  const __u64 busy = state_after_switch(13'000, idle, 0);
  const __u64 idle_again = state_after_switch(20'000, busy, 1);
  constexpr __u64 kWhole = (__u64{1} << 63) - 1;
  const auto at = [](__u64 now, __u64 state) { return idle_ns_until(now, state) & kWhole; };
  EXPECT_EQ(at(10'000, idle), 0U);
  EXPECT_EQ(at(12'000, idle), 2'000U);
  EXPECT_EQ(at(13'000, idle), 3'000U);
  EXPECT_EQ(at(13'000, busy), 3'000U);
  EXPECT_EQ(at(19'000, busy), 3'000U);
  EXPECT_EQ(at(20'000, idle_again), 3'000U);
  EXPECT_EQ(at(20'500, idle_again), 3'500U);
  EXPECT_EQ(idle & 1, 1U);
  EXPECT_EQ(busy & 1, 0U);
}

TEST(IdleProcessors, do_not_count_while_they_are_offline) {
  SeenIdle seen;
  const __u64 idle = state_after_switch(10'000, 0, 1);
  EXPECT_EQ(seen.look(12'000, idle, true), 2'000);
  EXPECT_EQ(seen.look(15'000, idle, false), 0);
  EXPECT_EQ(seen.look(90'000, idle, false), 0);
  EXPECT_EQ(seen.look(95'000, idle, true), 0) << "it has come back since the look before";
  EXPECT_EQ(seen.look(96'000, idle, true), 1'000);
  const __u64 busy = state_after_switch(97'000, idle, 0);
  EXPECT_EQ(seen.look(99'000, busy, true), 1'000);
}

TEST(IdleProcessors, are_online_by_the_kernels_list) {
  std::vector<bool> online(8);
  EXPECT_TRUE(parse_online("0-2,5,7-9\n", online));
  EXPECT_EQ(online, (std::vector<bool>{true, true, true, false, false, true, false, true}));
  EXPECT_TRUE(parse_online("1", online));
  EXPECT_EQ(online, (std::vector<bool>{false, true, false, false, false, false, false, false}));
  for (const char* const text : {"", "\n", "all", "1-", "0,,2", "0 1", "0-99999999999999999999"})
    EXPECT_FALSE(parse_online(text, online)) << text;
}

TEST(ProcessorWatch, says_why_where_it_cannot_be_had) {
  auto attached = ProcessorWatch::attach();
  if (attached) GTEST_SKIP() << "it can be had here";
  EXPECT_EQ(attached.code(), Errc::not_supported);
  EXPECT_NE(attached.error().message().find("eBPF"), std::string::npos);
}

TEST(ProcessorWatch, counts_no_more_idle_processors_than_there_are) {
  ATTACH_OR_SKIP(watch);
  Look last(watch);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(5ms);
    const Look now(watch);
    EXPECT_GE(now.idle, 0);
    EXPECT_LE(now.least_since(last).count(), now.most_since(last).count());
    last = now;
  }
}

TEST(ProcessorWatch, counts_no_processor_as_idle_while_it_works) {
  ATTACH_OR_SKIP(watch);
  const Look last(watch);
  const Seconds worked = work_everywhere();
  const Look now(watch);
  EXPECT_LE(now.least_since(last).count(), (now.most_since(last) - worked).count());
}

/// Whoever looks keeps the processor busy: if it was idle between two looks, it became so meanwhile, and was seen.
TEST(ProcessorWatch, counts_a_processor_as_idle_that_is_idle_by_the_kernels_count) {
  ATTACH_OR_SKIP(watch);
  constexpr int kMissed = 5;
  bool seen = false;
  int missed = 0;
  std::thread looker([&] {  // one of its own, because it stays on its processor
    const int here = sched_getcpu();
    if (here < 0 || !move_to_processor(static_cast<std::uint16_t>(here))) return;
    for (int i = 0; i < 40 && !seen && missed < kMissed; ++i) {
      const auto before = idle_ticks(here);
      (void)watch.idle();
      std::this_thread::sleep_for(50ms);
      seen = watch.idle() > 0;
      const auto after = idle_ticks(here);
      if (!seen && before && after && *after > *before) ++missed;
    }
  });
  looker.join();
  // One alone says nothing: the two counts do not begin and end at the same moments.
  if (!seen && missed < kMissed) GTEST_SKIP() << "this processor is hardly ever idle";
  EXPECT_TRUE(seen);
}

TEST(ProcessorWatch, is_counted_by_the_kernel_when_that_is_asked_for) {
  ATTACH_OR_SKIP(watch);
  auto counting = ProcessorWatch::count_cost();
  ASSERT_TRUE(counting) << counting.error().message();
  const auto before = watch.cost();
  ASSERT_TRUE(before);
  switch_around();
  const auto after = watch.cost();
  ASSERT_TRUE(after);
  EXPECT_GT(after->runs, before->runs);
  EXPECT_GT(after->nanoseconds, before->nanoseconds);
}

}  // namespace
}  // namespace lrpc::shim
