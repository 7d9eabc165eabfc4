#include "lrpc/detail/shim/system/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <ctime>
#include <thread>

namespace lrpc::shim {
namespace {

static_assert(std::endian::native == std::endian::little, "the futex half is the first half of the word");

/// Writes to `until` the absolute CLOCK_MONOTONIC time at which `limit` is over. Returns its address; null (never) if
/// `limit` is negative.
const timespec* deadline_of(std::chrono::nanoseconds limit, timespec& until) noexcept {
  if (limit.count() < 0) return nullptr;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const auto total = std::chrono::nanoseconds(until.tv_nsec) + limit;
  until.tv_sec += static_cast<time_t>(total.count() / 1'000'000'000);
  until.tv_nsec = static_cast<long>(total.count() % 1'000'000'000);
  return &until;
}

/// The longest sleep on several words where futex_waitv(2) is refused.
constexpr std::chrono::milliseconds kRefusedSleep{1};

/// What woke a sleeper whose system call failed with `err`.
Wake wake_of(int err) noexcept {
  switch (err) {
    case EAGAIN: return Wake::changed;
    case ETIMEDOUT: return Wake::timed_out;
    default: return Wake::interrupted;
  }
}

Wake wait(const void* word, int op, std::uint32_t expected, std::uint32_t bits,
          std::chrono::nanoseconds limit) noexcept {
  timespec until{};
  if (syscall(SYS_futex, word, op, expected, deadline_of(limit, until), nullptr, bits) == 0) return Wake::woken;
  return wake_of(errno);
}

/// Without futex_waitv(2): sleeps on the first word. The change of another one wakes nobody, so the caller must look at
/// them soon. They are not read here: a word may be unmapped by now, which only the kernel may find out.
Wake wait_for_first(std::span<const FutexWait> waits, std::chrono::nanoseconds limit) noexcept {
  const FutexWait& first = waits.front();
  const int op = FUTEX_WAIT_BITSET | (first.shared ? 0 : FUTEX_PRIVATE_FLAG);
  const bool cut = waits.size() > 1 && (limit.count() < 0 || limit > kRefusedSleep);
  const Wake wake = wait(first.word, op, first.expected, FUTEX_BITSET_MATCH_ANY, cut ? kRefusedSleep : limit);
  const bool refused = wake == Wake::interrupted && errno != EINTR;
  if (refused) std::this_thread::sleep_for(kRefusedSleep);  // the caller will try again
  return cut && wake == Wake::timed_out ? Wake::interrupted : wake;
}

}  // namespace

Wake futex_wait(std::atomic<std::uint64_t>& word, std::uint32_t expected, Sleeper who,
                std::chrono::nanoseconds limit) noexcept {
  return wait(&word, FUTEX_WAIT_BITSET, expected, static_cast<std::uint32_t>(who), limit);
}

void futex_wake(std::atomic<std::uint64_t>& word, Sleeper who) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, kMostSleepers, nullptr, nullptr, static_cast<std::uint32_t>(who));
}

Wake futex_wait_any(std::span<const FutexWait> waits, std::chrono::nanoseconds limit) noexcept {
  std::array<futex_waitv, kMostFutexWaits> list{};
  const std::size_t count = std::min(waits.size(), list.size());
  for (std::size_t i = 0; i < count; ++i) {
    list[i].val = waits[i].expected;
    list[i].uaddr = reinterpret_cast<std::uintptr_t>(waits[i].word);
    list[i].flags = FUTEX_32 | (waits[i].shared ? 0U : static_cast<std::uint32_t>(FUTEX_PRIVATE_FLAG));
  }
  timespec until{};
  if (syscall(SYS_futex_waitv, list.data(), count, 0U, deadline_of(limit, until), CLOCK_MONOTONIC) >= 0)
    return Wake::woken;
  const int err = errno;
  const bool refused = err != EAGAIN && err != ETIMEDOUT && err != EINTR;
  return refused ? wait_for_first(waits, limit) : wake_of(err);
}

bool can_wait_any() noexcept {
  return syscall(SYS_futex_waitv, nullptr, 0U, 0U, nullptr, CLOCK_MONOTONIC) < 0 && errno == EINVAL;
}

Wake futex_wait_private(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                        std::chrono::nanoseconds limit) noexcept {
  return wait(&word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, FUTEX_BITSET_MATCH_ANY, limit);
}

void futex_wake_private(std::atomic<std::uint32_t>& word, int count) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, 0);
}

}  // namespace lrpc::shim
