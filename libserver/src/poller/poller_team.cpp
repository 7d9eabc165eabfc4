#include "poller_team.h"

namespace lrpc::server {

PollerTeam::PollerTeam(const ServerOptions& options, DomainProcessors& processors, PollerGrant& grant)
    : grant_(grant), processors_(processors) {
  const std::size_t count = std::min<std::size_t>(options.pollers, kMost);
  pollers_.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    pollers_.push_back(std::make_unique<Poller>(*this, i, options, processors, grant));
}

void PollerTeam::offer(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) {
  if (!grant_.hot_call()) return;
  if (Poller* poller = poller_of(astack, shim::this_moment())) poller->accept(binding, astack);
}

bool PollerTeam::may_begin(const Poller& poller, shim::Moment now) const noexcept {
  return may_poll(poller.index()) && poller.takes_offers(now) && (processors_.any_but([&](std::uint16_t processor) {
           return taken(processor, nullptr, now);
         }) || poller.may_be_guest(now));
}

/// The poller that it had, if that polls or may begin to; else the first, if it does or may; else any that polls.
Poller* PollerTeam::poller_of(const ServedAStack& astack, shim::Moment now) const noexcept {
  if (pollers_.empty()) return nullptr;
  Poller* own = pollers_[astack.poller.load(std::memory_order_relaxed)].get();
  for (Poller* poller : {own, pollers_.front().get()}) {
    if (poller->polls() || may_begin(*poller, now)) return poller;
  }
  const auto polling = std::ranges::find_if(pollers_, [](const auto& poller) { return poller->polls(); });
  return polling == pollers_.end() ? nullptr : polling->get();
}

Poller* PollerTeam::helper_for(const Poller& poller, shim::Moment now) const noexcept {
  if (!back_off_.over(now)) return nullptr;
  for (const auto& other : pollers_) {
    if (other.get() != &poller && !other->polls() && may_begin(*other, now)) return other.get();
  }
  return nullptr;
}

Poller* PollerTeam::room_beside(const Poller& poller) const noexcept {
  for (const auto& other : pollers_) {
    if (other.get() != &poller && other->polls() && other->claim_room()) return other.get();
  }
  return nullptr;
}

}  // namespace lrpc::server
