// System calls of this program that a test may hold up: what the linker puts in the place of syscall(2) and madvise(2).
#pragma once

#include <atomic>
#include <cstdint>

namespace testing_lrpc {

/// Is told of them, on the threads that make them, which wait for it.
class Watch {
 public:
  Watch() { current_ = this; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  /// Before the threads that it watches end: none of them may be in it.
  virtual ~Watch() { current_ = nullptr; }

  /// Before FUTEX_WAIT_BITSET for these bits, and with what became of it: 0, or -1 and errno.
  virtual void waits(void* /*word*/, std::uint32_t /*expected*/, std::uint32_t /*bits*/) {}
  virtual void waited(void* /*word*/, std::uint32_t /*bits*/, long /*result*/) {}
  /// After FUTEX_WAKE_BITSET.
  virtual void woke(void* /*word*/, std::uint32_t /*bits*/) {}
  /// Before madvise(2) of pages that are to go.
  virtual void punches() {}

  [[nodiscard]] static Watch* current() noexcept { return current_; }

 private:
  static std::atomic<Watch*> current_;
};

}  // namespace testing_lrpc
