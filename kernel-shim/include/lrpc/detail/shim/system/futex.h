// Sleeping and waking on call words (futex(2), the shared kind) and on private words.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lrpc::shim {

/// A caller and an E-stack may both be queued on a call word for a moment. Each waits with its own bit, so a wake-up
/// for one never goes to the other.
enum class Sleeper : std::uint32_t { caller = 1, estack = 2 };

enum class Wake : std::uint8_t { woken, changed, timed_out, interrupted };

/// Sleeps while the futex half (the low 32 bits) of `word` equals `expected`, at most `limit` (forever if negative). If
/// it differs, returns Wake::changed at once. Spurious returns happen: check again.
Wake futex_wait(std::atomic<std::uint64_t>& word, std::uint32_t expected, Sleeper who,
                std::chrono::nanoseconds limit) noexcept;
/// An honest domain has one sleeper of each kind on a word, or, while one-way and abandoned calls have all A-stacks,
/// its threads that wait for the first of these. A dishonest one may have any number, and each takes the waker half a
/// microsecond; so no more than these are woken.
inline constexpr int kMostSleepers = 1024;
/// Wakes the sleepers of one kind on the word, at most kMostSleepers.
void futex_wake(std::atomic<std::uint64_t>& word, Sleeper who) noexcept;

/// One of several words on which a thread sleeps, while `*word` is `expected`.
struct FutexWait {
  const void* word = nullptr;  ///< The futex half of a call word, or a 32-bit word of this process.
  std::uint32_t expected = 0;
  bool shared = false;  ///< True for a call word.
};
/// The most words of one sleep.
inline constexpr std::size_t kMostFutexWaits = 128;
/// Sleeps until one of the words changes and its sleepers, of whatever kind, are woken; at most `limit` (forever if
/// negative). Spurious returns happen: check again. If the kernel refuses (futex_waitv(2) is filtered), only the first
/// word wakes the thread, and a sleep on several words ends after a millisecond, as Wake::interrupted. Precondition: 1
/// to kMostFutexWaits words.
Wake futex_wait_any(std::span<const FutexWait> waits, std::chrono::nanoseconds limit) noexcept;
/// Whether the kernel allows that. One system call.
[[nodiscard]] bool can_wait_any() noexcept;

/// The same on a 32-bit word that only this process uses.
Wake futex_wait_private(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                        std::chrono::nanoseconds limit) noexcept;
void futex_wake_private(std::atomic<std::uint32_t>& word, int count) noexcept;

}  // namespace lrpc::shim
