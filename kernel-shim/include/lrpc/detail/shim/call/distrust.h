// Not to try again at once what has not paid, by the clock.
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
/// One failure is an accident; the second within `accident_us` starts a span of `first_us` without trust, and a failure
/// within `accident_us` of trust's return starts a span twice as long, up to `most_us`. A failure later than that is
/// again an accident. So what always fails is tried more and more rarely, what failed once because the host stood still
/// is not punished, and a success has nothing to write down on the call path.
template <DistrustSpans kSpans>
class Distrust {
 public:
  /// Never for longer than `most_us`, also if the clock has begun anew (a machine that was suspended or moved).
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
  /// A failure that took time: no trust for `factor` times as long at least, at the first time already.
  constexpr void failed_at_a_cost(Moment now, std::uint64_t cost_us, std::uint32_t factor) noexcept {
    const bool again = last_ != 0 && now.since(last_) <= span_us_;
    const auto least = static_cast<std::uint32_t>(std::min<std::uint64_t>(factor * cost_us, kSpans.most_us));
    distrust(now, again ? std::clamp(2 * span_us_, least, kSpans.most_us) : least);
  }

 private:
  constexpr void distrust(Moment now, std::uint32_t span_us) noexcept {
    span_us_ = span_us;
    until_ = now.after(span_us);
    last_ = std::max<std::uint64_t>(until_, 1);  // from when on it can fail again
  }

  std::uint32_t span_us_ = 0;  ///< The last one; 0: none of late.
  std::uint64_t until_ = 0;    ///< ticks()
  std::uint64_t last_ = 0;     ///< ticks() of the last failure, or of trust's return after it; 0: never.
};

}  // namespace lrpc::shim
