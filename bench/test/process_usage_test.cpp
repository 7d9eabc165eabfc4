#include "core/process_usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lrpc::bench {
namespace {

TEST(ProcessUsage, a_number_is_found_behind_its_own_key_only) {
  constexpr std::string_view text = "Pss_Shmem:   12 kB\nPss:  \t 345 kB\nRss: 6 kB\n";
  EXPECT_EQ(proc_number(text, "Pss"), 345U);
  EXPECT_EQ(proc_number(text, "Pss_Shmem"), 12U);
  EXPECT_EQ(proc_number(text, "Shmem"), 0U);
  EXPECT_EQ(proc_number("", "Pss"), 0U);
}

TEST(ProcessUsage, a_field_is_the_rest_of_its_line) {
  constexpr std::string_view text = "Name:\ta b\nCpus_allowed_list:\t1\nCpus_allowed:\t2\nEmpty:\n";
  EXPECT_EQ(proc_field(text, "Name"), "a b");
  EXPECT_EQ(proc_field(text, "Cpus_allowed_list"), "1");
  EXPECT_EQ(proc_field(text, "Cpus_allowed"), "2");
  EXPECT_EQ(proc_field(text, "Empty"), "");
  EXPECT_EQ(proc_field(text, "Threads"), "");
}

TEST(ProcessUsage, the_times_of_a_stat_line_are_found_behind_any_name) {
  EXPECT_EQ(stat_clock_ticks("42 (a) b) 1 (2) S 1 2 3 4 5 6 7 8 9 10 700 30 0 0 20 0 1"), 730U);
  EXPECT_EQ(stat_clock_ticks("no line at all"), 0U);
  EXPECT_EQ(stat_clock_ticks("1 (x) S 1"), 0U);
}

TEST(ProcessUsage, this_process_has_a_thread_and_memory) {
  const auto cpu = cpu_usage(::getpid());
  ASSERT_TRUE(cpu);
  EXPECT_GE(cpu->threads, 1U);
  const auto memory = memory_usage(::getpid());
  if (!memory) GTEST_SKIP() << memory.error().message();
  EXPECT_GT(memory->pss, 0);
}

TEST(ProcessUsage, what_a_thread_that_ended_had_used_is_not_less_than_nothing) {
  const CpuUsage used = CpuUsage{.clock_ticks = 1, .ns = 5} - CpuUsage{.clock_ticks = 2, .ns = 3};
  EXPECT_EQ(used.clock_ticks, 0U);
  EXPECT_EQ(used.ns, 2U);
}

TEST(ProcessUsage, a_process_that_is_not_there_is_an_error) { EXPECT_FALSE(cpu_usage(-1)); }

}  // namespace
}  // namespace lrpc::bench
