// The one way to say "no limit" and "do not wait" in an option, a quota or a wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <limits>
#include <string>

#include "lrpc/detail/shim/result.h"

namespace lrpc {

/// The rule for every duration, count and number of bytes in this project's API (docs/INTERFACE.md has the table):
///
/// - kNoLimit, which is the type's largest value: no limit, for ever. Nothing else means that.
/// - kDoNotWait, which is a span of zero: do not wait. A count of zero is none.
/// - An option that has no meaning is refused with Errc::invalid_argument and a text that names it: a negative
///   duration, and a zero where nothing could work with it.
/// - A function that only waits (Pending::wait_for(), CompletionQueue::wait(), CallScope) takes what is left of
///   somebody's time: a negative span is over, as zero is.
struct NoLimit {
  explicit NoLimit() = default;
  template <class Rep, class Period>
  constexpr operator std::chrono::duration<Rep, Period>() const noexcept {  // NOLINT: implicit by design
    return std::chrono::duration<Rep, Period>::max();
  }
  template <std::unsigned_integral Count>
  requires(!std::same_as<Count, bool>) constexpr operator Count() const noexcept {  // NOLINT: implicit by design
    return std::numeric_limits<Count>::max();
  }
  template <class Rep, class Period>
  friend constexpr bool operator==(std::chrono::duration<Rep, Period> span, NoLimit) noexcept {
    return span == std::chrono::duration<Rep, Period>::max();
  }
  template <std::unsigned_integral Count>
  friend constexpr bool operator==(Count count, NoLimit) noexcept {
    return count == std::numeric_limits<Count>::max();
  }
};
inline constexpr NoLimit kNoLimit{};

struct DoNotWait {
  explicit DoNotWait() = default;
  template <class Rep, class Period>
  constexpr operator std::chrono::duration<Rep, Period>() const noexcept {  // NOLINT: implicit by design
    return std::chrono::duration<Rep, Period>::zero();
  }
  template <class Rep, class Period>
  friend constexpr bool operator==(std::chrono::duration<Rep, Period> span, DoNotWait) noexcept {
    return span == std::chrono::duration<Rep, Period>::zero();
  }
};
inline constexpr DoNotWait kDoNotWait{};

namespace shim {

/// What programs and policy files write for kNoLimit.
inline constexpr const char* kNoLimitWord = "no-limit";

/// How much of a timeout is left. It counts from the construction.
class Wait {
 public:
  explicit Wait(std::chrono::milliseconds whole) : whole_(whole) {}
  [[nodiscard]] std::chrono::milliseconds whole() const noexcept { return whole_; }
  [[nodiscard]] std::chrono::milliseconds left() const {
    if (whole_ == kNoLimit) return kNoLimit;
    // In ms: the whole may be too long for a duration in ns.
    const auto waited = std::chrono::floor<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began_);
    return std::max<std::chrono::milliseconds>(whole_ - waited, kDoNotWait);
  }

 private:
  std::chrono::milliseconds whole_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

/// Refuses a duration below zero. `option` as the program spells it: "ImportOptions::timeout".
template <class Rep, class Period>
[[nodiscard]] Status check_wait(const char* option, std::chrono::duration<Rep, Period> span) {
  if (span.count() >= 0) return {};
  return Error{Errc::invalid_argument, std::string(option) +
                                           " is negative: write lrpc::kDoNotWait for no time at all, lrpc::kNoLimit "
                                           "for no limit"};
}
/// Refuses a duration that is not over zero.
template <class Rep, class Period>
[[nodiscard]] Status check_span(const char* option, std::chrono::duration<Rep, Period> span) {
  if (span.count() > 0) return {};
  return Error{Errc::invalid_argument, std::string(option) + " is " + (span.count() == 0 ? "zero" : "negative") +
                                           ": it must be longer; write lrpc::kNoLimit for no limit"};
}
/// Refuses a count of zero.
[[nodiscard]] inline Status check_count(const char* option, std::uint64_t count) {
  if (count > 0) return {};
  return Error{Errc::invalid_argument, std::string(option) + " is 0: at least 1; write lrpc::kNoLimit for no limit"};
}

}  // namespace shim
}  // namespace lrpc
