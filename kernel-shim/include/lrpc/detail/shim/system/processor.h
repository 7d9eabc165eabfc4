// What a thread knows about its processor without a system call: its number, a cycle counter, a delay for polling.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>

#include "lrpc/detail/shim/system/moment.h"

#if defined(__x86_64__)
#include "lrpc/detail/shim/system/arch/x86_64.h"
#elif defined(__aarch64__)
#include "lrpc/detail/shim/system/arch/aarch64.h"
#else
#error "lrpc knows x86-64 and aarch64; add system/arch/<yours>.h with poll_delay() and ticks()"
#endif

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

namespace lrpc::shim {

/// As a processor number: "not known". So is every number from CPU_SETSIZE up.
inline constexpr std::uint16_t kNoProcessor = 0xffff;
[[nodiscard]] constexpr bool is_processor(std::uint16_t number) noexcept { return number < CPU_SETSIZE; }

/// The processor on which this thread runs, or no processor's number. Two loads, no system call: the kernel keeps the
/// number up to date in the restartable-sequence area (rseq(2); glibc registers it). The result may be out of date at
/// once: it is a hint.
[[nodiscard]] inline std::uint16_t current_processor() noexcept {
#ifdef RSEQ_SIG
  // The low half is enough: -1 or -2, not registered (glibc.pthread.rseq=0, valgrind), is larger than any processor.
  return load_from_thread<offsetof(struct rseq, cpu_id)>(__rseq_offset);
#else
  return kNoProcessor;
#endif
}

/// Ticks per microsecond, and poll_delay()s per microsecond. Measured once per process, on first use (some 30 us).
[[nodiscard]] std::uint64_t ticks_per_microsecond() noexcept;
[[nodiscard]] std::uint32_t poll_delays_per_microsecond() noexcept;
[[nodiscard]] inline Moment this_moment() noexcept { return {ticks(), ticks_per_microsecond()}; }
/// Nanoseconds per tick, by that first measurement: exact to about a five-hundredth.
[[nodiscard]] double nanoseconds_per_tick() noexcept;
/// The same, measured from that first measurement to `tick` and `now`, which were read together. The longer that is,
/// the more exact the rate (after 10 ms to about a hundred-thousandth). If no time has passed, the first rate.
[[nodiscard]] double nanoseconds_per_tick(std::uint64_t tick, std::chrono::steady_clock::time_point now) noexcept;
/// The rate if `ns` nanoseconds passed between two ticks; pure. `first` if the rate differs from that by more than the
/// tolerance: then the counter has restarted in between (suspend, another machine).
[[nodiscard]] double rate_between(double first, std::int64_t ns, std::uint64_t from, std::uint64_t to) noexcept;
inline constexpr double kRateTolerance = 0.02;

/// Processor time of the calling thread so far, in microseconds (clock_gettime(2)).
[[nodiscard]] std::uint64_t thread_microseconds() noexcept;
/// How often the calling thread was preempted (getrusage(2)).
[[nodiscard]] std::uint64_t involuntary_switches() noexcept;

/// Binds the calling thread to one processor. False if the kernel refused (not in the cpuset), which may be ignored:
/// placement affects speed, never correctness.
bool move_to_processor(std::uint16_t processor) noexcept;

}  // namespace lrpc::shim
