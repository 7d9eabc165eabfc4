// What a process has used, by the kernel's own books.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// Of all threads that are alive.
struct CpuUsage {
  std::uint64_t clock_ticks = 0;  ///< utime + stime of /proc/PID/task/*/stat; usually 10 ms each.
  std::uint64_t ns = 0;           ///< Time on a processor, of /proc/PID/task/*/schedstat; 0 where the kernel has none.
  std::uint64_t voluntary = 0;    ///< Times a thread went to sleep: each is a wake-up, too.
  std::uint64_t involuntary = 0;
  std::uint64_t threads = 0;
};
Result<CpuUsage> cpu_usage(pid_t process);
/// What was used between the two.
[[nodiscard]] CpuUsage operator-(const CpuUsage& later, const CpuUsage& earlier) noexcept;

/// KiB.
struct MemoryUsage {
  double pss = 0;          ///< Proportional: what several processes map counts for each in part, in all once.
  double page_tables = 0;  ///< VmPTE.
};
Result<MemoryUsage> memory_usage(pid_t process);

/// Of the whole machine, KiB: what others do in between is in here, too.
struct KernelMemory {
  double slab = 0;           ///< SUnreclaim: sockets, descriptors, tasks.
  double kernel_stacks = 0;  ///< 16 KiB a thread, as a rule.
};
[[nodiscard]] KernelMemory kernel_memory();

/// What a file of /proc says; empty if there is none.
[[nodiscard]] std::string proc_contents(const std::string& path);
/// What is behind `key` in lines of the form "key: text", as /proc has them, without the blanks before; empty if there
/// is none.
[[nodiscard]] std::string_view proc_field(std::string_view text, std::string_view key) noexcept;
/// The same as a number; 0 if there is none.
[[nodiscard]] std::uint64_t proc_number(std::string_view text, std::string_view key) noexcept;
/// utime + stime of a /proc/.../stat line, whatever the program is called; 0 if it is none.
[[nodiscard]] std::uint64_t stat_clock_ticks(std::string_view line) noexcept;

}  // namespace lrpc::bench
