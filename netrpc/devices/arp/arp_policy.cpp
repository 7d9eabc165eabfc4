#include "netrpc/devices/arp/arp_policy.h"

#include <algorithm>

#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::arp {

OwnAddress::Action OwnAddress::tick(Time now) noexcept {
  if (step_ >= kProbes + kAnnouncements) return {};
  const bool probe = step_++ < kProbes;
  return {.probe = probe, .announce = !probe && undisputed(now)};
}

Duration OwnAddress::pause() const noexcept {
  if (step_ >= kProbes + kAnnouncements) return {};
  return step_ < kProbes ? kProbePause : kAnnouncePause;
}

OwnAddress::Action OwnAddress::claimed(Time now) noexcept {
  const Action action{.announce = step_ > kProbes && (!claimed_ || now - *claimed_ >= kDefendPause),
                      .report = !reported_ || now - *reported_ >= kReportPause};
  claimed_ = now;
  if (action.report) reported_ = now;
  return action;
}

Confirmations::Poll Confirmations::doubted(HostAddress host, Time now) noexcept {
  if (now - since_ >= kPause) {
    since_ = now;
    polls_ = 0;
  }
  if (polls_ >= kMost) return Poll::none;
  Doubt* doubt = doubts_.resolve({hash_seed_, host});
  if (doubt == nullptr) {
    if (doubts_.size() >= kRemembered) doubts_.clear();
    if (!attempt([&] { doubt = &doubts_.bind({hash_seed_, host}, {}); })) return Poll::none;
  } else if (now - doubt->last >= kForgotten) {
    *doubt = {};
  } else if (now - doubt->last < doubt->pause) {
    return Poll::none;
  }
  doubt->last = now;
  ++polls_;
  if (++doubt->polls <= kUnicasts) return Poll::unicast;
  doubt->pause = std::min(doubt->pause * 2, kLongestPause);
  return Poll::broadcast;
}

}  // namespace lrpc::netrpc::arp
