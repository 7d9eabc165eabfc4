// How long a peer has said nothing, for protocols that give a peer up.
#pragma once

#include <algorithm>

#include "lrpc/netrpc/clock.h"

namespace lrpc::netrpc {

/// The silence of a peer that is asked again whenever a timer comes. How late the timer comes is no silence: in that
/// time this host stood still (a paused virtual machine, a stopped process), and has asked nothing.
class Silence {
 public:
  /// The asking begins. Nothing that the peer could execute has been sent yet.
  void begins(Time now) noexcept {
    *this = {};
    heard_ = now;
  }
  /// There is a sign of life. It may be an old one: what the peer may have forgotten before, it may have forgotten.
  void ends(Time now, Duration bound) noexcept {
    forgotten_ = may_have_forgotten(now, bound);
    heard_ = now;
    stood_still_ = {};
  }
  /// The timer that was to come at `due` has come.
  void timer_came(Time now, Time due) noexcept { stood_still_ += std::max(now - std::max(due, heard_), Duration(0)); }
  /// When it will have lasted for `bound`, if this host does not stand still again.
  [[nodiscard]] Time lasts_until(Duration bound) const noexcept { return heard_ + stood_still_ + bound; }
  /// This one or one before has lasted so long by the clock: the peer may have forgotten what it has executed. It may
  /// be asked, but must be sent nothing that it could execute once more.
  [[nodiscard]] bool may_have_forgotten(Time now, Duration bound) const noexcept {
    return forgotten_ || now - heard_ >= bound;
  }

 private:
  Time heard_{};
  Duration stood_still_{};
  bool forgotten_ = false;
};

}  // namespace lrpc::netrpc
