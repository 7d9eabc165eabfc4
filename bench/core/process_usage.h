// What a process has used, as the kernel reports it in /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// Sum over all threads that are alive.
struct CpuUsage {
  std::uint64_t clock_ticks = 0;  ///< utime + stime of /proc/PID/task/*/stat; usually 10 ms each.
  std::uint64_t ns = 0;           ///< Time on a processor, of /proc/PID/task/*/schedstat; 0 where the kernel has none.
  std::uint64_t voluntary = 0;    ///< How often a thread went to sleep; each of these also costs a wake-up.
  std::uint64_t involuntary = 0;
  std::uint64_t threads = 0;
};
Result<CpuUsage> cpu_usage(pid_t process);
/// What was used between the two readings.
[[nodiscard]] CpuUsage operator-(const CpuUsage& later, const CpuUsage& earlier) noexcept;

/// In KiB.
struct MemoryUsage {
  double pss = 0;          ///< Proportional: a page that n processes map counts 1/n for each.
  double page_tables = 0;  ///< VmPTE.
};
Result<MemoryUsage> memory_usage(pid_t process);

/// Of the whole machine, in KiB; it also contains what other processes change between two readings.
struct KernelMemory {
  double slab = 0;           ///< SUnreclaim: sockets, descriptors, tasks.
  double kernel_stacks = 0;  ///< 16 KiB a thread, as a rule.
};
[[nodiscard]] KernelMemory kernel_memory();

/// The text of a file in /proc; empty if there is no such file.
[[nodiscard]] std::string proc_contents(const std::string& path);
/// The text after "key:" in lines of the form "key: text", as in /proc, without the leading blanks; empty if there is
/// no such line.
[[nodiscard]] std::string_view proc_field(std::string_view text, std::string_view key) noexcept;
/// As proc_field(), as a number; 0 if there is none.
[[nodiscard]] std::uint64_t proc_number(std::string_view text, std::string_view key) noexcept;
/// utime + stime of a line of /proc/.../stat, whatever characters the program's name has; 0 if the line is malformed.
[[nodiscard]] std::uint64_t stat_clock_ticks(std::string_view line) noexcept;

}  // namespace lrpc::bench
