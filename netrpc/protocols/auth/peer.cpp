// Sending, receiving, and which associations are kept; handshake.cpp has the packets that make them.
#include "netrpc/protocols/auth/peer.h"

#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::auth {

Peer::Peer(Protocol& self, Protocol& below, control::Statistics& counted, const Settings& settings, HostAddress host,
           Key key)
    : self_(self),
      below_(below),
      counted_(counted),
      settings_(settings),
      host_(host),
      key_(std::move(key)),
      timer_([this] { try_again(); }) {
  pending_.reserve(settings.pending);
}

Errc Peer::push(Message message) noexcept {
  if (!has_key_) return Errc::not_permitted;
  last_used = self_.host().now();
  if (message.size() > Message::kMaxContiguous) return Errc::message_too_long;
  Association* const association = sending();
  if (association != nullptr) [[likely]] {
    // The next association is made while this one is used.
    if (old(*association) && !running_) begin_handshake();
    // The peer nudges when it does not know an association, but anybody can use up its rate limit for nudges. So
    // silence begins a handshake, too. Messages go on meanwhile.
    if (!running_ && silent()) begin_handshake();
    return seal_and_send(*association, std::move(message), last_used);
  }
  // One of the hosts must be given another cipher first. A handshake after each `silence` finds out whether that has
  // happened.
  if (no_cipher_ && !running_ && last_used - no_cipher_since_ < settings_.silence)
    return dropped(counted_.refused, Errc::ok);
  if (const Status opened = open_lower(); !opened) return opened.code();
  if (pending_.size() < settings_.pending) {
    pending_.push_back(std::move(message));
  } else {
    ++counted_.refused;  // datagrams: the protocols above send again
  }
  if (!running_) begin_handshake();
  return Errc::ok;
}

/// Whether its keys must be replaced. The responder waits an eighth longer, so that not both hosts begin.
bool Peer::old(const Association& association) const noexcept {
  const auto reached = [&association](auto used, auto limit) {
    return used >= limit && (association.initiator() || used - limit >= limit / 8);
  };
  return reached(association.sent(), settings_.rekey_messages) ||
         reached(last_used - association.born(), settings_.rekey_after) ||
         reached(association.blocks(), association.limits.blocks / 2);
}

Association* Peer::sending() noexcept {
  Association* best = nullptr;
  for (Association& association : associations_) {
    // One that the peer has not confirmed may be unknown to it: our reply is under way, or got lost.
    if (!association.alive() || !association.confirmed || association.doubted || association.spent()) continue;
    if (best == nullptr || association.better_than(*best)) best = &association;
  }
  return best;
}

bool Peer::silent() const noexcept {
  return unanswered_ >= settings_.silence_messages && last_used - unanswered_since_ >= settings_.silence;
}

Errc Peer::seal_and_send(Association& association, Message message, Time now) noexcept {
  association.last_used = now;
  if (unanswered_ == 0) unanswered_since_ = now;
  if (unanswered_ < settings_.silence_messages) ++unanswered_;
  const Errc sealed = association.seal(self_.host().address(), host_, message);
  return sealed == Errc::ok ? send(std::move(message)) : sealed;
}

Errc Peer::send(Message message) noexcept {
  if (!message.allocated()) return Errc::limit_reached;
  if (!lower_) [[unlikely]]
    if (const Status opened = open_lower(); !opened) return opened.code();
  ++counted_.sent;
  const Errc sent = lower_->push(std::move(message));
  // There may be another path next time.
  if (sent == Errc::host_unreachable && place_ != Place::found) forget_place();
  return sent;
}

Status Peer::open_lower() noexcept {
  if (lower_) return {};
  return or_limit_reached([this]() -> Status {
    auto opened = below_.open(self_, {protocol_numbers::kAuth, {.host = self_.host().address()}, {.host = host_}});
    if (!opened) return opened.error();
    lower_ = std::move(*opened);
    place_ = Place::sought;
    return {};
  });
}

/// A fresh packet of the peer has come through `lower`: if peers may be anywhere, the peer is there. An attacker who
/// sends a copy of a packet from elsewhere, faster than the packet itself, is taken for the peer until the peer's next
/// packet comes. A peer that has answered at its own address is not moved in this way.
void Peer::heard_through(Session& lower) noexcept {
  if (!settings_.anywhere || place_ == Place::home || lower_.get() == &lower) return;
  lower_ = SessionRef(&lower);
  place_ = Place::found;
  // A running handshake went to the old place: it gets its tries again. Not 0 if a HELLO was repeated: the answer must
  // not be measured (Karn).
  tries_ = std::min(tries_, 1);
}

/// Whether `association` is the best one that the peer has used. There may be a better one that the peer does not have
/// yet.
bool Peer::best_in_use(const Association& association) const noexcept {
  return std::ranges::none_of(associations_, [&](const Association& other) {
    return other.alive() && !other.doubted && other.highest_opened() != 0 && other.better_than(association);
  });
}

Ends Peer::ends() const noexcept { return {self_.host().address(), host_}; }

bool Peer::open(Association& association, const DataHeader& header, const std::byte* sealed, Message& message,
                Session& lower) noexcept {
  const bool newest = header.counter > association.highest_opened();
  const Opened opened = association.open(header, sealed, message);
  if (opened == Opened::replayed) return dropped(counted_.duplicates, false);
  if (opened != Opened::ok) return dropped(counted_.refused, false);
  last_used = association.last_used = self_.host().now();
  association.confirmed = true;
  association.doubted = false;
  unanswered_ = 0;
  if (newest && best_in_use(association)) heard_through(lower);
  if (!pending_.empty()) send_pending();
  return true;
}

Association& Peer::free_association() noexcept {
  Association* worst = &associations_[0];
  for (Association& association : associations_) {
    if (!association.alive()) return association;
    if (worst->better_than(association)) worst = &association;
  }
  worst->wipe();
  return *worst;
}

std::uint32_t Peer::new_number() noexcept {
  for (;;) {
    const auto number = static_cast<std::uint32_t>(self_.host().random());
    if (number != 0 && find(number) == nullptr && !(running_ && hello_.association == number)) return number;
  }
}

std::uint32_t Peer::next_generation() const noexcept {
  std::uint32_t highest = 0;
  for (const Association& association : associations_)
    if (association.alive()) highest = std::max(highest, association.generation());
  return highest == ~std::uint32_t{0} ? highest : highest + 1;
}

bool Peer::heard(BootId boot_id) noexcept {
  if (boot_id_ == boot_id) return false;
  if (boot_id_ != 0)
    for (Association& association : associations_) association.wipe();  // the life they were made with is over
  challenge_ = {};  // a HELLO of the life before may carry it, and come late
  boot_id_ = boot_id;
  return true;
}

void Peer::rekeyed(const Key* key) noexcept {
  if (key != nullptr && has_key_ && key->same_secret(key_)) {
    if (key_.of_one_host() && !key->of_one_host()) leave_place();
    key_ = *key;  // the line may be another one
    return;
  }
  for (Association& association : associations_) association.wipe();
  end_handshake();
  leave_place();
  pending_.clear();
  accepted_ = {};
  no_cipher_ = false;
  has_key_ = key != nullptr;
  key_ = key != nullptr ? *key : Key();
}

void Peer::sweep(bool everything) noexcept {
  const Association* const best = sending();
  if (best == nullptr) return;
  const Time now = self_.host().now();
  for (Association& association : associations_) {
    if (!association.alive() || &association == best || association.better_than(*best)) continue;
    if (everything || now - std::max(association.last_used, best->born()) >= settings_.linger) association.wipe();
  }
}

}  // namespace lrpc::netrpc::auth
