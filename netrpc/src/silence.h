// How long a peer has been silent, for protocols that give up on a silent peer.
#pragma once

#include <algorithm>

#include "lrpc/netrpc/clock.h"

namespace lrpc::netrpc {

/// The silence of a peer that is asked again whenever a timer runs. The delay of a late timer does not count as
/// silence: meanwhile this host stood still (a paused virtual machine, a stopped process) and asked nothing.
class Silence {
 public:
  /// The first question is sent. Nothing that the peer could execute has been sent yet.
  void begins(Time now) noexcept {
    *this = {};
    heard_ = now;
  }
  /// A sign of life has arrived. It may be an old one: so may_have_forgotten() stays true if it was true before.
  void ends(Time now, Duration bound) noexcept {
    forgotten_ = may_have_forgotten(now, bound);
    heard_ = now;
    stood_still_ = {};
  }
  /// The timer that was due at `due` runs.
  void timer_came(Time now, Time due) noexcept { stood_still_ += std::max(now - std::max(due, heard_), Duration(0)); }
  /// When the silence will have lasted for `bound`, if this host does not stand still again.
  [[nodiscard]] Time lasts_until(Duration bound) const noexcept { return heard_ + stood_still_ + bound; }
  /// This silence or an earlier one has lasted for `bound` by the clock: the peer may have forgotten which requests it
  /// has executed. It may be asked, but must not be sent a request, which it could execute a second time.
  [[nodiscard]] bool may_have_forgotten(Time now, Duration bound) const noexcept {
    return forgotten_ || now - heard_ >= bound;
  }

 private:
  Time heard_{};
  Duration stood_still_{};
  bool forgotten_ = false;
};

/// Whether a periodic event that was due at `due` comes so late that this host has stood still. Then what peers have
/// sent meanwhile has not been read yet: they may not be forgotten as silent ones.
[[nodiscard]] constexpr bool stood_still(Time now, Time due) noexcept { return now - due > std::chrono::seconds(1); }

}  // namespace lrpc::netrpc
