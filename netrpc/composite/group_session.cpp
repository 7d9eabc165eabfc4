#include "netrpc/composite/group_session.h"

#include <algorithm>
#include <utility>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/composite/composite.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

/// The smallest of the members' sizes. Fails if none says its size.
template <class Size>
Errc GroupSession::least(Size& size) noexcept {
  Errc outcome = Errc::host_unreachable;
  const std::span<const SessionRef> all = members();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Size one;
    const Errc answer = all[i] ? control::ask(*all[i], one) : why_not(i).code;
    if (answer == Errc::ok) size.size = outcome == Errc::ok ? std::min(size.size, one.size) : one.size;
    if (answer == Errc::ok || !tells_more(outcome)) outcome = answer;
  }
  return outcome;
}

GroupSession::GroupSession(Framework& framework, Protocol& high, const ParticipantSet& participants)
    : Session(framework, high, participants), framework_(framework) {
  const auto hosts = framework.host().groups().members(participants.remote.host);
  hosts_.assign(hosts.begin(), hosts.end());
  members_.resize(hosts_.size());
  why_not_.resize(hosts_.size());
}

std::span<const SessionRef> GroupSession::members() noexcept {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i]) continue;
    ParticipantSet one = participants();
    one.remote.host = hosts_[i];
    const bool had_memory = attempt([&] {
      auto opened = framework_.TransparentProtocol::open(high(), one);
      why_not_[i] = opened ? Error() : opened.error();
      if (opened) members_[i] = *std::move(opened);
    });
    if (!had_memory) why_not_[i] = Error{Errc::limit_reached, {}};
  }
  return members_;
}

const Error& GroupSession::why_none() const noexcept {
  const auto found = std::ranges::find_if(why_not_, tells_more, &Error::code);
  return found != why_not_.end() ? *found : why_not_.front();
}

Errc GroupSession::push(Message message) noexcept {
  const SessionRef keep(this);
  return framework_.push_through(*this, std::move(message));
}

void GroupSession::call(Message request, Transaction& transaction, Duration timeout) noexcept {
  const SessionRef keep(this);  // its caller may let go of it in completed()
  framework_.call_through(*this, std::move(request), transaction, timeout);
}

void GroupSession::cancel(Transaction& transaction) noexcept { framework_.cancel(transaction); }

Errc GroupSession::control(control::Request& request) noexcept {
  if (auto* const largest = std::get_if<control::MaximumMessage>(&request)) return least(*largest);
  if (auto* const best = std::get_if<control::OptimumMessage>(&request)) return least(*best);
  if (auto* const known = std::get_if<control::Authenticated>(&request)) {
    for (const SessionRef& member : members()) {
      control::Authenticated one;
      if (!member || control::ask(*member, one) != Errc::ok || !one.authenticated) return Errc::ok;
      *known = one;
    }
    return Errc::ok;
  }
  if (std::holds_alternative<control::FreedByCancel>(request))
    return framework_.style() == CallStyle::call ? Errc::ok : Errc::not_supported;
  const bool known =
      std::holds_alternative<control::PeerHost>(request) || std::holds_alternative<control::Statistics>(request);
  return known ? Session::control(request) : Errc::not_supported;
}

}  // namespace lrpc::netrpc::composite
