// System calls of this program that a test may hold up or refuse: what the linker puts in the place of syscall(2),
// madvise(2) and sendmsg(2).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/system/futex.h"

namespace testing_lrpc {

/// Is told of them, on the threads that make them, which wait for it. It outlives the server and the client whose
/// threads it is told of.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() { current_ = nullptr; }
  /// From now on, in place of any other.
  void begin() { current_ = this; }

  static constexpr std::uint32_t kAnyOf = 0;
  /// Before FUTEX_WAIT_BITSET for these bits, at most for `limit`, and with what became of it: 0, or -1 and errno. Of
  /// futex_waitv(2): kAnyOf, and its first word.
  virtual void waits(void* /*word*/, std::uint32_t /*expected*/, std::uint32_t /*bits*/,
                     std::chrono::nanoseconds /*limit*/) {}
  virtual void waited(void* /*word*/, std::uint32_t /*bits*/, long /*result*/) {}
  /// After FUTEX_WAKE_BITSET.
  virtual void woke(void* /*word*/, std::uint32_t /*bits*/) {}
  /// After FUTEX_WAKE, which is for words of this process alone.
  virtual void woke_here() {}
  /// Whether membarrier(2) is to fail for want of memory.
  virtual bool refuses_fence() { return false; }
  /// Whether sendmsg(2) with descriptors is to fail, because too many of this user are in flight.
  virtual bool refuses_descriptors() { return false; }
  /// Before madvise(2) of pages that are to go.
  virtual void punches() {}

  /// Of waits(): whether an E-stack goes to sleep for longer than the time after which a call is looked for.
  static bool is_long_sleep_of_estack(std::uint32_t bits, std::chrono::nanoseconds limit) noexcept {
    const bool of_estack = bits == kAnyOf || bits == static_cast<std::uint32_t>(lrpc::shim::Sleeper::estack);
    return of_estack && limit > lrpc::shim::kBoundedSleep;
  }

  [[nodiscard]] static Watch* current() noexcept { return current_; }

 private:
  static std::atomic<Watch*> current_;
};

}  // namespace testing_lrpc
