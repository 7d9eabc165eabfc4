// The eBPF program, where the build, the kernel and the user's privileges have it.
#include "processor_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "idle_processors.h"

namespace lrpc::shim {
namespace {

using namespace std::chrono_literals;

/// Some context switches, so that every processor that can be seen is seen.
void switch_around() {
  for (int i = 0; i < 200; ++i) std::this_thread::sleep_for(1ms);
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

TEST(ProcessorWatch, says_why_where_it_cannot_be_had) {
  auto attached = ProcessorWatch::attach();
  if (attached) GTEST_SKIP() << "it can be had here";
  EXPECT_EQ(attached.code(), Errc::not_supported);
  EXPECT_NE(attached.error().message().find("eBPF"), std::string::npos);
}

TEST(ProcessorWatch, counts_no_more_idle_processors_than_there_are) {
  ATTACH_OR_SKIP(watch);
  const auto processors = static_cast<double>(sysconf(_SC_NPROCESSORS_CONF));
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(5ms);
    const double idle = watch.idle();
    EXPECT_GE(idle, 0);
    EXPECT_LE(idle, processors + 0.01);
  }
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
