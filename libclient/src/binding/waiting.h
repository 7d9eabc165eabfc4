// What ends the waiting of a call before its return does: deadlines, the binding's call_timeout, cancellations.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>

#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/limits.h"
#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/futex.h"

namespace lrpc::client {

/// The limits of one wait: those of the calling thread and, for a started call, those under which it was started. Lives
/// on the stack of the waiting thread; the limits must outlive it.
class Waiting {
 public:
  using Clock = std::chrono::steady_clock;

  /// For anything but a call's return. `timeout`: that of the binding's calls, counted from now.
  explicit Waiting(std::chrono::milliseconds timeout = kNoLimit) noexcept {
    if (!(timeout == kNoLimit)) until_ = Clock::now() + shim::Deadline::span(timeout);
    if (shim::CallLimits* const limits = shim::calling_thread.limits; limits != nullptr) {
      until_ = std::min(until_, limits->deadline.until());
      own_ = limits->cancellations().get();
    }
  }
  /// For the return of the call on `linkage`.
  explicit Waiting(const shim::LinkageRecord& linkage, std::chrono::milliseconds timeout = kNoLimit) noexcept
      : Waiting(timeout) {
    if (!linkage.limited) return;
    until_ = std::min(until_, linkage.until);
    started_ = linkage.cancellations.get();
  }

  /// Clock::time_point::max(): there is no deadline.
  [[nodiscard]] Clock::time_point until() const noexcept { return until_; }
  [[nodiscard]] bool cancelled() const noexcept { return shim::cancelled(own_) || shim::cancelled(started_); }
  /// Why the wait ended before the return: call_cancelled after a cancellation, even if a deadline has come, too;
  /// call_aborted otherwise.
  [[nodiscard]] Errc why_over() const noexcept { return cancelled() ? Errc::call_cancelled : Errc::call_aborted; }
  [[nodiscard]] bool cancellable() const noexcept { return own_ != nullptr || started_ != nullptr; }
  /// The time that is left for a sleep, at most `bound`. Zero or less: none.
  [[nodiscard]] std::chrono::nanoseconds left(std::chrono::nanoseconds bound) const noexcept {
    if (until_ == Clock::time_point::max()) return bound;
    const Clock::time_point now = Clock::now();
    return until_ <= now ? std::chrono::nanoseconds(0) : std::min<std::chrono::nanoseconds>(bound, until_ - now);
  }

  /// Sleeps while all of `words` have their expected values and no cancellation has come, at most `limit`. Returns
  /// timed_out only when `limit` is over: then the caller does more than look at its words.
  template <std::size_t kWords>
  shim::Wake sleep(const std::array<shim::FutexWait, kWords>& words, std::chrono::nanoseconds limit) const noexcept {
    std::array<shim::FutexWait, kWords + kMostCancellations> all{};
    std::copy(words.begin(), words.end(), all.begin());
    const auto some = std::span(all).first(append(all, kWords));
    // There may be more cancellations than words, so check all of them at this interval.
    const std::chrono::nanoseconds longest = some.size() == all.size() ? kCrowded : limit;
    const Clock::time_point until = Clock::now() + limit;
    for (auto left = limit; left.count() > 0; left = until - Clock::now()) {
      const shim::Wake wake = shim::futex_wait_any(some, std::min(left, longest));
      if (wake == shim::Wake::woken || wake == shim::Wake::changed) return wake;
      if (cancelled()) return shim::Wake::changed;  // also if the kernel cannot wake us by that word
    }
    return shim::Wake::timed_out;
  }
  /// Appends the words of the cancellations to the first `count` of `to`, as far as there is room. Returns the new
  /// count.
  [[nodiscard]] std::size_t append(std::span<shim::FutexWait> to, std::size_t count) const noexcept {
    for (const shim::Cancellations* chain = own_; chain != nullptr && count < to.size(); chain = chain->around.get())
      to[count++] = {&chain->word->cancelled, 0, false};
    // The scopes that both chains have in common are the outer ones of both.
    for (const shim::Cancellations* chain = started_; chain != nullptr && count < to.size() && !is_own(chain);
         chain = chain->around.get())
      to[count++] = {&chain->word->cancelled, 0, false};
    return count;
  }

  /// The most cancellations whose words fit. A thread that has this many or more checks them at the interval kCrowded.
  static constexpr std::size_t kMostCancellations = 8;
  static constexpr std::chrono::milliseconds kCrowded{1};

 private:
  [[nodiscard]] bool is_own(const shim::Cancellations* one) const noexcept {
    const shim::Cancellations* chain = own_;
    while (chain != nullptr && chain != one) chain = chain->around.get();
    return chain != nullptr;
  }

  Clock::time_point until_ = Clock::time_point::max();
  const shim::Cancellations* own_ = nullptr;
  const shim::Cancellations* started_ = nullptr;
};

/// H11: a thread that sleeps again and again checks the server every kBoundedSleep, however often signals or foreign
/// wake-ups cut its sleeps short. Reads the clock only if a sleep was cut short and the call has not returned.
class LookAfterServer {
 public:
  /// Call it after each sleep.
  void slept(shim::Wake wake) noexcept { cut_short_ = wake != shim::Wake::timed_out; }
  /// Whether to check the server now. Call it before each sleep.
  [[nodiscard]] bool due() noexcept {
    if (!cut_short_) return false;
    const auto now = Waiting::Clock::now();
    if (at_ == Waiting::Clock::time_point()) at_ = now + shim::kBoundedSleep;
    return now >= at_;
  }
  void looked() noexcept { *this = {}; }

 private:
  Waiting::Clock::time_point at_{};  ///< Zero: no sleep has been cut short.
  bool cut_short_ = false;
};

}  // namespace lrpc::client
