// A client process that does something whenever it is its turn, and sleeps on a futex otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// What such a process shares with the bench; lies in Shared, together with whatever a turn needs.
class TurnDesk {
 public:
  /// In the bench, before the process is forked.
  void prepare() noexcept { turn_.store(1, std::memory_order_relaxed); }
  /// In the process: reports `ready` as its first turn, and runs `body` once for each that follows.
  [[noreturn]] void serve(const Status& ready, const std::function<Status()>& body) noexcept;

  /// In the bench: begins the next turn. Precondition: the last one is over.
  void begin() noexcept;
  /// Whether the turn that was begun last is over.
  [[nodiscard]] bool over() const noexcept {
    return done_.load(std::memory_order_acquire) == turn_.load(std::memory_order_relaxed);
  }
  /// The first error of any turn.
  [[nodiscard]] Status health() const;

 private:
  void fail(const Error& error) noexcept;

  std::atomic<std::uint32_t> turn_;
  std::atomic<std::uint32_t> done_;
  std::atomic<bool> failed_;
  char why_[256];
};

/// In the bench: waits until all turns are over. Sleeps for `at_least` first, so as not to be a load itself, then looks
/// every half millisecond; gives up `patience` later. Errors: call_aborted (Ctrl-C), timed_out, and what a turn
/// reports.
Status await_turns(std::span<TurnDesk* const> desks, std::chrono::nanoseconds at_least,
                   std::chrono::nanoseconds patience = std::chrono::minutes(4));

}  // namespace lrpc::bench
