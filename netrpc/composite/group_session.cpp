#include "netrpc/composite/group_session.h"

#include <algorithm>
#include <utility>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/composite/composite.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

namespace {

/// The smallest of the members' sizes.
template <class Size>
Errc least(std::span<const SessionRef> members, Size& size) noexcept {
  Errc outcome = Errc::host_unreachable;
  for (const SessionRef& member : members) {
    Size one;
    if (!member || control::ask(*member, one) != Errc::ok) continue;
    size.size = outcome == Errc::ok ? std::min(size.size, one.size) : one.size;
    outcome = Errc::ok;
  }
  return outcome;
}

}  // namespace

GroupSession::GroupSession(Framework& framework, Protocol& high, const ParticipantSet& participants)
    : Session(framework, high, participants), framework_(framework) {
  const auto hosts = framework.host().groups().members(participants.remote.host);
  hosts_.assign(hosts.begin(), hosts.end());
  members_.resize(hosts_.size());
}

std::span<const SessionRef> GroupSession::members() noexcept {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i]) continue;
    ParticipantSet one = participants();
    one.remote.host = hosts_[i];
    attempt([&] {  // without memory, the next call tries again
      if (auto opened = framework_.TransparentProtocol::open(high(), one)) members_[i] = *std::move(opened);
    });
  }
  return members_;
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
  if (auto* const largest = std::get_if<control::MaximumMessage>(&request)) return least(members(), *largest);
  if (auto* const best = std::get_if<control::OptimumMessage>(&request)) return least(members(), *best);
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
