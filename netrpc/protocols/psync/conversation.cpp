#include "netrpc/protocols/psync/conversation.h"

#include <string>
#include <utility>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/psync/protocol.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc::psync {

// ---- sessions ----

Speaker::Speaker(Conversation& conversation, const ParticipantSet& participants)
    : Session(conversation.protocol(), conversation.high(), participants), conversation_(&conversation) {}

Errc Speaker::push(Message message) noexcept {
  if (conversation_ == nullptr) return Errc::not_supported;
  const SessionRef keep(conversation_);
  return conversation_->push(std::move(message));
}

Errc Speaker::control(control::Request& request) noexcept {
  if (conversation_ == nullptr) return Errc::not_supported;
  if (auto* const asked = std::get_if<control::Context>(&request)) return conversation_->context(peer(), *asked);
  return conversation_->control(request);
}

Conversation::Conversation(Psync& protocol, Protocol& high, const ParticipantSet& participants)
    : Session(protocol, high, participants),
      psync_(protocol),
      options_(protocol.options()),
      tick_([this] { tick(); }) {}

Conversation::~Conversation() {
  psync_.ended(*this);
  for (const Member& member : members_)
    if (member.speaker) static_cast<Speaker&>(*member.speaker).conversation_ends();
}

Result<SessionRef> Conversation::open(Psync& protocol, Protocol& high, const ParticipantSet& participants) {
  auto* const made = new Conversation(protocol, high, participants);
  SessionRef session(made);
  if (Status begun = made->begin(protocol.host().groups().members(participants.remote.host)); !begun)
    return begun.error();
  return session;
}

Status Conversation::begin(std::span<const HostAddress> hosts) {
  const auto wrong = [&](const std::string& why) {
    return Error{Errc::invalid_argument, protocol().name() + ": the group " + to_string(peer()) + why};
  };
  if (hosts.empty()) return wrong(" is not known to this host");
  if (hosts.size() > Header::kMostMarks)
    return wrong(" has more than " + std::to_string(Header::kMostMarks) + " members");
  const auto self = std::ranges::find(hosts, psync_.host().address());
  if (self == hosts.end()) return wrong(" does not have this host as a member");
  self_ = static_cast<std::size_t>(self - hosts.begin());
  members_.resize(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    Member& member = members_[i];
    member.host = hosts[i];
    member.heard = psync_.host().now();
    member.has.resize(hosts.size());
    member.slots.resize(options_.window);
    if (i == self_) {
      member.life = psync_.next_life();
      continue;
    }
    ParticipantSet one = participants();
    one.remote.host = hosts[i];
    member.speaker = SessionRef(new Speaker(*this, one));
    if (auto lower = psync_.open_below(hosts[i])) member.lower = *std::move(lower);
  }
  return {};
}

Errc Conversation::control(control::Request& request) noexcept {
  if (auto* const asked = std::get_if<control::Context>(&request)) return context(members_[self_].host, *asked);
  if (auto* const asked = std::get_if<control::Outstanding>(&request)) {
    *asked = outstanding();
    return Errc::ok;
  }
  if (!std::holds_alternative<control::MaximumMessage>(request) &&
      !std::holds_alternative<control::OptimumMessage>(request))
    return Session::control(request);
  return psync_.control(request);
}

Errc Conversation::context(HostAddress host, control::Context& asked) noexcept {
  Mark name = asked.message;
  Member* const of = find(name.sequence == 0 ? host : name.host);
  if (of == nullptr) return Errc::name_unknown;
  if (name.sequence == 0) name = {of->host, of->life, of->delivered};
  if (name.sequence == 0 || name.life != of->life || !holds(*of, name.sequence)) return Errc::name_unknown;
  const Header header = *Header::of(slot(*of, name.sequence).packet);
  asked = {name, {}, 0, name.sequence <= of->delivered, 0};
  for (const Mark& mark : header.all())
    if (mark.sequence != 0) asked.before[asked.count++] = mark;
  for (const Member& one : members_) asked.lacking += has(one, *of) < name.sequence ? 1U : 0U;
  return Errc::ok;
}

control::Outstanding Conversation::outstanding() const noexcept {
  control::Outstanding all;
  for (const Member& of : members_) {
    std::uint32_t last = of.delivered;
    for (const Member& one : members_) last = std::max(last, has(one, of));
    all.here += last - of.delivered;
  }
  const Member& self = members_[self_];
  all.elsewhere = self.delivered - self.stable;
  return all;
}

// ---- what is known of the members ----

/// `who` has received this message, and all earlier ones of that member.
void Conversation::note(Member& who, const Mark& mark) noexcept {
  const Member* const of = find(mark.host);
  if (of == nullptr || of->life != mark.life || &who == &members_[self_]) return;
  std::uint32_t& known = who.has[index(*of)];
  // Nobody has more of this host's messages than there are.
  if (of == &members_[self_] && mark.sequence > of->delivered) return;
  known = std::max(known, mark.sequence);
}

// ---- what is pushed ----

Header Conversation::header_of(Type type) const noexcept {
  Header header;
  header.type = type;
  header.protocol = participants().protocol;
  header.group = peer();
  header.id = {members_[self_].host, members_[self_].life, 0};
  return header;
}

/// Whether a packet of `size` bytes cannot reach the member.
bool Conversation::too_long(const Member& to, std::size_t size) const noexcept {
  control::MaximumMessage longest;
  return size > kSurelyCarried && to.lower && control::ask(*to.lower, longest) == Errc::ok && size > longest.size;
}

Errc Conversation::push(Message message) noexcept {
  Member& self = members_[self_];
  if (self.delivered - self.stable >= options_.window || self.delivered == options_.last_sequence)
    return Errc::limit_reached;
  Header header = header_of(Type::message);
  header.id.sequence = self.delivered + 1;
  for (const Member& one : members_)
    if (one.leaf) header.add({one.host, one.life, one.delivered});
  const std::size_t size = header.size() + message.size();
  if (std::ranges::any_of(members_, [&](const Member& one) { return too_long(one, size); }))
    return Errc::message_too_long;  // these would never get it
  if (message.pool() == nullptr) message = Message(psync_.host().pool());
  std::byte* const to = message.push(header.size());
  if (to == nullptr) return Errc::limit_reached;
  header.encode(to);
  Message kept = message.share();
  if (!kept.allocated()) return Errc::limit_reached;
  for (Member& one : members_) one.leaf = &one == &self;
  slot(self, header.id.sequence) = {header.id.sequence, std::move(kept)};
  self.delivered = header.id.sequence;
  for (Member& one : members_)
    if (&one != &self) (void)send(one, message.share());
  settle();
  keep_ticking();
  return Errc::ok;
}

/// Sends a control message, or a message that `to` lacks. A lost one does no harm: it is sent or asked for again.
/// Errors: those of Session::push().
Errc Conversation::send(Member& to, Message&& packet) noexcept {
  if (!to.lower) {
    auto lower = psync_.open_below(to.host);
    if (!lower) return lower.code();
    to.lower = *std::move(lower);
  }
  if (!packet.allocated()) return Errc::limit_reached;
  ++psync_.statistics().sent;
  return to.lower->push(std::move(packet));
}

void Conversation::send(Member& to, const Header& header) noexcept {
  Message packet(psync_.host().pool());
  std::byte* const at = packet.push(header.size());
  if (at == nullptr) return;
  header.encode(at);
  (void)send(to, std::move(packet));
}

void Conversation::send_status(Member& to, bool ask, std::uint32_t question) noexcept {
  Header header = header_of(Type::status);
  header.ask = ask;
  header.id.sequence = question;
  for (const Member& one : members_)
    if (one.life != 0 && (question == 0 || &one == &members_[self_])) header.add({one.host, one.life, one.delivered});
  send(to, header);
}

// ---- time ----

/// Whether a member may lack something that is here, or has something that this host lacks. `of_silent`: also what only
/// silent members have.
bool Conversation::unsettled(bool of_silent) const noexcept {
  return std::ranges::any_of(members_, [&](const Member& one) {
    return one.delivered != one.stable || std::ranges::any_of(members_, [&](const Member& other) {
             return (of_silent || !other.out) && has(other, one) > one.delivered;
           });
  });
}

/// What only silent members have comes when they are heard again, or never: they are asked for it rarely.
void Conversation::keep_ticking() noexcept {
  if (tick_.waiting() && busy_) return;
  const bool was_quiet = !std::exchange(busy_, unsettled(false));
  if (!busy_) {
    if (!tick_.waiting() && unsettled(true)) psync_.host().events().schedule(tick_, options_.silence);
    return;
  }
  // Until now nobody had to send anything: silence counts from now on.
  for (Member& one : members_)
    if (was_quiet) one.heard = psync_.host().now();
  psync_.host().events().schedule(tick_, options_.interval);
}

void Conversation::tick() noexcept {
  const SessionRef keep(this);
  const Time now = psync_.host().now();
  const Duration late = now - tick_.due();  // this host stood still for so long: that was nobody's silence
  for (Member& one : members_) {
    if (&one == &members_[self_]) continue;
    one.heard = std::min(one.heard + late, now);
    if (busy_ && now - one.heard > options_.silence) one.out = true;
    ask_for_missing(one);
    send_status(one, true);
  }
  advance();
  settle();
  keep_ticking();
}

}  // namespace lrpc::netrpc::psync
