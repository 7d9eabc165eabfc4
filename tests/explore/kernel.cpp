// The kernel, and kernel-shim's sources that call it, for explored threads: only what the code under test uses.
#include "standard.h"

#include "lrpc/detail/shim/call/calling_thread.h"
#include "lrpc/detail/shim/system/asymmetric_fence.h"
#include "lrpc/detail/shim/system/futex.h"

#include "kernel.h"

namespace testing_lrpc {
bool membarrier_is_refused = false;
}

namespace lrpc::shim {
namespace {

constexpr std::uint32_t kEveryKind = 0xffff'ffff;

std::uint32_t low_half(const void* word) {
  std::uint32_t value = 0;
  std::memcpy(&value, word, sizeof value);
  return value;
}

/// No time passes: a sleep that is bounded in the product must end by a wake-up here, or the run fails.
Wake sleep(const std::vector<const void*>& words, std::uint32_t kinds, const std::function<bool()>& is_so) {
  return explore::sleep_on(words, kinds, is_so) ? Wake::woken : Wake::changed;
}

}  // namespace

constinit thread_local CallingThread calling_thread;

Wake futex_wait(std::atomic<std::uint64_t>& word, std::uint32_t expected, Sleeper who,
                std::chrono::nanoseconds /*limit*/) noexcept {
  return sleep({&word}, static_cast<std::uint32_t>(who), [&] { return low_half(&word) == expected; });
}

void futex_wake(std::atomic<std::uint64_t>& word, Sleeper who) noexcept {
  explore::wake(&word, static_cast<std::uint32_t>(who), explore::kMostThreads);
}

Wake futex_wait_any(std::span<const FutexWait> waits, std::chrono::nanoseconds /*limit*/) noexcept {
  std::vector<const void*> words;
  for (const FutexWait& wait : waits) words.push_back(wait.word);
  return sleep(words, kEveryKind, [&] {
    return std::ranges::all_of(waits, [](const FutexWait& wait) { return low_half(wait.word) == wait.expected; });
  });
}

Wake futex_wait_private(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                        std::chrono::nanoseconds /*limit*/) noexcept {
  return sleep({&word}, kEveryKind, [&] { return low_half(&word) == expected; });
}

void futex_wake_private(std::atomic<std::uint32_t>& word, int count) noexcept {
  explore::wake(&word, kEveryKind, count);
}

const bool have_asymmetric_fence = true;
const bool have_shared_fence = true;

bool heavy_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (testing_lrpc::membarrier_is_refused) return false;
  explore::fence_everybody("heavy_fence");
  return true;
}

bool heavy_shared_fence() noexcept {
  explore::fence_everybody("heavy_shared_fence");
  return true;
}

}  // namespace lrpc::shim
