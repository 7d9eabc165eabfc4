#include "thread_pair.h"

#include <chrono>
#include <utility>

#include "lrpc/detail/shim/system/futex.h"

namespace lrpc::bench {
namespace {

std::uint32_t await_change(std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept {
  for (;;) {
    if (const std::uint32_t now = word.load(std::memory_order_acquire); now != old) return now;
    shim::futex_wait_private(word, old, std::chrono::nanoseconds(-1));
  }
}

void set(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  word.store(value, std::memory_order_release);
  shim::futex_wake_private(word, 1);
}

}  // namespace

ThreadPair::ThreadPair(std::function<void()> work) : work_(std::move(work)), thread_([this] { serve(); }) {}

ThreadPair::~ThreadPair() {
  set(asked_, kEnd);
  thread_.join();
}

void ThreadPair::round_trip() noexcept {
  const std::uint32_t before = done_.load(std::memory_order_relaxed);
  set(asked_, (before + 1) & (kEnd >> 1));  // never kEnd
  (void)await_change(done_, before);
}

void ThreadPair::serve() {
  for (std::uint32_t seen = 0;;) {
    seen = await_change(asked_, seen);
    if (seen == kEnd) return;
    work_();
    set(done_, seen);
  }
}

}  // namespace lrpc::bench
