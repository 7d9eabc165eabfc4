// What a thread can know about its processor without entering the kernel: its number, a cycle clock, a delay for
// polling.
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

/// "Not known", where a processor number is expected. So is every number from CPU_SETSIZE up.
inline constexpr std::uint16_t kNoProcessor = 0xffff;
[[nodiscard]] constexpr bool is_processor(std::uint16_t number) noexcept { return number < CPU_SETSIZE; }

/// The processor this thread runs on, from the restartable-sequence area that the kernel keeps up to date (rseq(2),
/// glibc registers it), or no processor's number. Two loads, no system call. Out of date as soon as it is returned: a
/// hint.
[[nodiscard]] inline std::uint16_t current_processor() noexcept {
#ifdef RSEQ_SIG
  // The low half tells enough: not registered (glibc.pthread.rseq=0, valgrind) is -1 or -2, larger than any processor.
  return load_from_thread<offsetof(struct rseq, cpu_id)>(__rseq_offset);
#else
  return kNoProcessor;
#endif
}

/// Ticks in a microsecond, and poll_delay()s. Measured once per process, on first use (some 30 us).
[[nodiscard]] std::uint64_t ticks_per_microsecond() noexcept;
[[nodiscard]] std::uint32_t poll_delays_per_microsecond() noexcept;
[[nodiscard]] inline Moment this_moment() noexcept { return {ticks(), ticks_per_microsecond()}; }
/// Nanoseconds a tick, as it was then: to about a five-hundredth.
[[nodiscard]] double nanoseconds_per_tick() noexcept;
/// The same over all the time since then, which `tick` and `now`, read together, end: the longer ago, the better it is
/// known (after 10 ms to about a hundred-thousandth). As it was then, as long as no time has passed.
[[nodiscard]] double nanoseconds_per_tick(std::uint64_t tick, std::chrono::steady_clock::time_point now) noexcept;
/// That rate, of so many nanoseconds from one tick to another; pure. As it was `first` where it differs from that by
/// more than the tolerance: then the time stamps have begun anew in between (suspend, another machine).
[[nodiscard]] double rate_between(double first, std::int64_t ns, std::uint64_t from, std::uint64_t to) noexcept;
inline constexpr double kRateTolerance = 0.02;

/// Processor time of the calling thread so far, in microseconds (clock_gettime(2)).
[[nodiscard]] std::uint64_t thread_microseconds() noexcept;
/// How often the calling thread was switched out against its will (getrusage(2)).
[[nodiscard]] std::uint64_t involuntary_switches() noexcept;

/// Binds the calling thread to one processor, or fails silently: placement is a matter of speed, never of correctness.
/// False if the kernel refused (not in the cpuset).
bool move_to_processor(std::uint16_t processor) noexcept;

}  // namespace lrpc::shim
