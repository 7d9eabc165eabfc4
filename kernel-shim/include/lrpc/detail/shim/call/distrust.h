// For how long not to try again what has failed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lrpc/detail/shim/system/moment.h"

namespace lrpc::shim {

/// See Distrust.
struct DistrustSpans {
  std::uint32_t accident_us;
  std::uint32_t first_us;
  std::uint32_t most_us;
};

/// Remembers that something did not pay, and until when not to try it again.
///
/// One failure is an accident. A second one within `accident_us` starts a span of `first_us` without trust. A failure
/// within `accident_us` after the span starts another one, twice as long, up to `most_us`. A later failure is again an
/// accident. So what always fails is tried more and more rarely; what failed once, because the host stood still, is
/// not punished; and the call path need not record a success.
template <DistrustSpans kSpans>
class Distrust {
 public:
  /// Never true for longer than `most_us`, even if the clock restarts (a machine that was suspended or moved).
  [[nodiscard]] constexpr bool holds(Moment now) const noexcept {
    return now.ticks < until_ && until_ <= now.after(kSpans.most_us);
  }
  constexpr void failed(Moment now) noexcept {
    const bool again = last_ != 0 && now.since(last_) <= kSpans.accident_us;
    last_ = std::max<std::uint64_t>(now.ticks, 1);
    if (!again) {
      span_us_ = 0;
      return;
    }
    distrust(now, span_us_ == 0 ? kSpans.first_us : std::min(2 * span_us_, kSpans.most_us));
  }
  /// A failure that took time. Even the first one starts a span, at least `factor` times as long as the cost.
  constexpr void failed_at_a_cost(Moment now, std::uint64_t cost_us, std::uint32_t factor) noexcept {
    const bool again = last_ != 0 && now.since(last_) <= span_us_;
    const auto least = static_cast<std::uint32_t>(std::min<std::uint64_t>(factor * cost_us, kSpans.most_us));
    distrust(now, again ? std::clamp(2 * span_us_, least, kSpans.most_us) : least);
  }

 private:
  constexpr void distrust(Moment now, std::uint32_t span_us) noexcept {
    span_us_ = span_us;
    until_ = now.after(span_us);
    last_ = std::max<std::uint64_t>(until_, 1);  // when it can fail again
  }

  std::uint32_t span_us_ = 0;  ///< The last span; 0: none lately.
  std::uint64_t until_ = 0;    ///< ticks()
  std::uint64_t last_ = 0;     ///< ticks() of the last failure, or of the end of its span; 0: never.
};

}  // namespace lrpc::shim
