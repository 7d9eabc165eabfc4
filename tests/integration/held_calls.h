// System calls of this program that a test can delay or refuse: the linker replaces syscall(2), madvise(2), sendmsg(2)
// and poll(2) by these wrappers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/system/futex.h"

namespace testing_lrpc {

/// Its functions run on the threads that make the system calls, which wait for them. It must outlive the server and the
/// client whose threads call it.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() { current_ = nullptr; }
  /// From now on this object is called, instead of any other.
  void begin() { current_ = this; }

  static constexpr std::uint32_t kAnyOf = 0;
  /// Before and after FUTEX_WAIT_BITSET for these bits, which waits at most for `limit`; `result` is 0, or -1 with
  /// errno. For futex_waitv(2): kAnyOf, and its first word.
  virtual void waits(void* /*word*/, std::uint32_t /*expected*/, std::uint32_t /*bits*/,
                     std::chrono::nanoseconds /*limit*/) {}
  virtual void waited(void* /*word*/, std::uint32_t /*bits*/, long /*result*/) {}
  /// After FUTEX_WAKE_BITSET.
  virtual void woke(void* /*word*/, std::uint32_t /*bits*/) {}
  /// After FUTEX_WAKE, which is used only for words of this process.
  virtual void woke_here() {}
  /// Whether membarrier(2) shall fail with ENOMEM.
  virtual bool refuses_fence() { return false; }
  /// Whether sendmsg(2) with descriptors shall fail with ETOOMANYREFS: too many of this user are in flight.
  virtual bool refuses_descriptors() { return false; }
  /// Whether poll(2) with this timeout shall say at once that its time is over.
  virtual bool skips_poll(int /*timeout_ms*/) { return false; }
  /// Before madvise(2) that removes pages.
  virtual void punches() {}

  /// For waits(): whether an E-stack begins a sleep longer than kBoundedSleep.
  static bool is_long_sleep_of_estack(std::uint32_t bits, std::chrono::nanoseconds limit) noexcept {
    const bool of_estack = bits == kAnyOf || bits == static_cast<std::uint32_t>(lrpc::shim::Sleeper::estack);
    return of_estack && limit > lrpc::shim::kBoundedSleep;
  }

  [[nodiscard]] static Watch* current() noexcept { return current_; }

 private:
  static std::atomic<Watch*> current_;
};

}  // namespace testing_lrpc
