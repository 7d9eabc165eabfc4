// Sleeping and waking on call words (futex(2), the shared kind) and on private words.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lrpc::shim {

/// Caller and E-stack may both be queued on one call word for a moment; each waits under its own bit, so that a wake
/// meant for one never spends itself on the other.
enum class Sleeper : std::uint32_t { caller = 1, estack = 2 };

enum class Wake : std::uint8_t { woken, changed, timed_out, interrupted };

/// Sleeps while the futex half (the low 32 bits) of `word` equals `expected`, at most `limit` (forever if negative).
/// Returns at once with Wake::changed if it does not. Spurious returns happen: re-check.
Wake futex_wait(std::atomic<std::uint64_t>& word, std::uint32_t expected, Sleeper who,
                std::chrono::nanoseconds limit) noexcept;
/// Wakes all sleepers of one kind on the word. Returns how many were woken.
int futex_wake(std::atomic<std::uint64_t>& word, Sleeper who) noexcept;

/// One of several words that a thread sleeps on: while `*word` is `expected`.
struct FutexWait {
  const void* word = nullptr;  ///< The futex half of a call word, or a 32-bit word of this process.
  std::uint32_t expected = 0;
  bool shared = false;  ///< A call word.
};
/// The most of them that one sleep can have.
inline constexpr std::size_t kMostFutexWaits = 128;
/// Sleeps until one of the words changes and somebody wakes its sleepers, of whatever kind; at most `limit` (forever if
/// negative). Spurious returns happen: re-check. Where the kernel refuses (futex_waitv(2) is filtered), sleeps a
/// millisecond. Precondition: 1 to kMostFutexWaits of them.
Wake futex_wait_any(std::span<const FutexWait> waits, std::chrono::nanoseconds limit) noexcept;
/// Whether the kernel does not refuse that. One system call.
[[nodiscard]] bool can_wait_any() noexcept;

/// The same on a 32-bit word of this process alone.
Wake futex_wait_private(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                        std::chrono::nanoseconds limit) noexcept;
int futex_wake_private(std::atomic<std::uint32_t>& word, int count) noexcept;

}  // namespace lrpc::shim
