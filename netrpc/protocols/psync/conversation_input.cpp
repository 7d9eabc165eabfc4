// What each packet of a conversation does. Any member may have made it up.
#include <algorithm>
#include <utility>

#include "netrpc/protocols/psync/protocol.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc::psync {

void Conversation::arrived(HostAddress host, const Header& header, const Message& packet) noexcept {
  const SessionRef keep(this);
  Member* const from = find(host);
  if (from == nullptr || from == &members_[self_]) return dropped(psync_.statistics().refused);
  // A message may come from another member than the one that has pushed it.
  Member* const origin = find(header.id.host);
  if (origin == nullptr || header.id.life == 0 || (header.type != Type::message && origin != from))
    return dropped(psync_.statistics().malformed);
  if (header.type == Type::status && !header.ask) life_answered(*from, header.id);
  if (origin != from) told(*origin, header.id.life);
  const bool believed = origin == &members_[self_] || believes(*origin, header.id.life);
  // A question for this host's life is always answered: two hosts that do not know each other yet both ask. This host's
  // own question was sent first. So the other host answers it before this answer makes that host ask for messages, and
  // its life is known here by then.
  if (header.is_question()) send_status(*from, false, header.id.sequence);
  if (!believed) return;
  if (origin == from) {
    from->heard = psync_.host().now();
    from->out = false;
  }
  switch (header.type) {
    case Type::message: message(*from, header, packet); break;
    case Type::status:
      for (const Mark& mark : header.all()) {
        if (Member* const of = find(mark.host)) told(*of, mark.life);
        note(*from, mark);
      }
      if (header.ask && !header.is_question()) send_status(*from, false);
      advance();  // the status may have named another life
      ask_for_missing(*from);
      break;
    case Type::request: request(*from, header); break;
    case Type::gone: gone(header); break;
  }
  settle();
  keep_ticking();
}

void Conversation::message(Member& from, const Header& header, const Message& packet) noexcept {
  Member& origin = *find(header.id.host);
  const std::uint32_t sequence = header.id.sequence;
  if (&origin == &members_[self_]) return;
  // A member that has pushed a message has what precedes it. A member that sends it again may not: it may have received
  // that in an earlier life, and may have changed the context (outlive()).
  if (&from == &origin)
    for (const Mark& mark : header.all()) note(origin, mark);
  if (&from == &origin || sequence - origin.stable <= options_.window) note(origin, header.id);
  const bool held = holds(origin, sequence);
  Slot& place = slot(origin, sequence);
  if (sequence <= origin.delivered || (held && !place.outdated)) return dropped(psync_.statistics().duplicates);
  if (sequence - origin.stable > options_.window) return dropped(psync_.statistics().refused);
  Message kept = packet.share();
  if (!kept.allocated()) return;
  place = {sequence, std::move(kept), false, held ? place.waits_since : Time{}};
  advance();
  if (!holds(origin, sequence) || sequence > origin.delivered) ask_for_missing(from);
}

/// Sends what `from` lacks, if it is kept here. Otherwise says up to which message nothing is kept any more, of every
/// member: what `from` skips must include all that precedes it, or a predecessor could come up after what follows it.
void Conversation::request(Member& from, const Header& header) noexcept {
  bool lost = false;
  for (const Mark& mark : header.all()) {
    Member* const of = find(mark.host);
    if (of == nullptr || of->life != mark.life || mark.sequence == 0) continue;
    if (holds(*of, mark.sequence)) {
      ++psync_.statistics().retransmissions;
      if (send(from, slot(*of, mark.sequence).packet.share()) == Errc::message_too_long)
        give_up(from, *of, mark.sequence);
    } else if (mark.sequence <= of->stable) {
      lost = true;
    }
  }
  if (!lost) return;
  Header gone = header_of(Type::gone);
  for (const Member& of : members_)
    if (of.gone_up_to() != 0 || of.before.front().life != 0) gone.add({of.host, of.life, of.gone_up_to()});
  send(from, gone);
}

/// The link to `from` has shrunk, and carries this message no more. Once `from` has all that precedes it, tells `from`
/// that it is gone; `from` then skips nothing else. Others that ask `from` for this message are then told that it is
/// gone, and skip all that they lack before it, too. So this waits until each other member that is heard has
/// the message, or lacks nothing else up to it and has a link that does not carry it either.
void Conversation::give_up(Member& from, Member& of, std::uint32_t sequence) noexcept {
  if (sequence > of.delivered || !holds(of, sequence)) return;
  const Message& packet = slot(of, sequence).packet;
  const auto kept = Header::of(packet);
  if (!kept) return;
  const auto lacks_this_alone = [&](const Member& one) {
    return has(one, of) + 1 == sequence && std::ranges::all_of(kept->all(), [&](const Mark& mark) {
             const Member* const before = find(mark.host);
             return before == nullptr || before->life != mark.life || mark.sequence <= has(one, *before);
           });
  };
  const auto would_lose_more = [&](const Member& one) {
    if (&one == &from || one.out || has(one, of) >= sequence) return false;
    return !lacks_this_alone(one) || !too_long(one, packet.size());
  };
  if (!lacks_this_alone(from) || std::ranges::any_of(members_, would_lose_more)) return;
  Header gone = header_of(Type::gone);
  for (const Member& one : members_)
    if (one.life != 0) gone.add({one.host, one.life, &one == &of ? sequence : has(from, one)});
  send(from, gone);
}

/// Takes all of it or nothing: if a member's life is not known yet, the packet comes again. A member that is not silent
/// says itself how many messages it has pushed; it is not believed that more than those are gone.
void Conversation::gone(const Header& header) noexcept {
  bool known = true;
  bool skips = false;
  for (const Mark& mark : header.all()) {
    Member* const of = find(mark.host);
    if (of == nullptr) continue;
    told(*of, mark.life);
    if (of != &members_[self_] && of->life != mark.life && past(*of, mark.life) == nullptr) {
      ask_for_life(*of, mark.life);
      known = false;
    }
    if (of == &members_[self_] || of->life != mark.life || mark.sequence <= of->delivered) continue;
    skips = true;
    known = known && (of->out || mark.sequence <= has(*of, *of));
  }
  if (!known) return;
  for (const Mark& mark : header.all()) {
    Member* const of = find(mark.host);
    if (of == nullptr || of->life != mark.life) continue;
    // Messages up to the mark that are kept here may precede skipped ones: a host that this host tells to skip those
    // must skip these, too.
    const bool own = of == &members_[self_];
    if (skips) of->skipped = std::max(of->skipped, own ? std::min(mark.sequence, of->delivered) : mark.sequence);
    if (own || mark.sequence <= of->delivered) continue;
    // Messages up to the mark that wait here are given up, too. They follow something that is gone, and without that
    // nobody can tell in which order the waiting messages of several members belong.
    for (Slot& one : of->slots)
      if (one.sequence != 0 && one.sequence <= mark.sequence) one = {};
    psync_.statistics().failed += mark.sequence - of->delivered;
    of->delivered = of->stable = mark.sequence;
  }
  advance();
}

/// Gives the member's next message to the protocol above, if it is there and all that precedes it has been given.
bool Conversation::deliver_next(Member& member) noexcept {
  const std::uint32_t sequence = member.delivered + 1;
  if (&member == &members_[self_] || !holds(member, sequence)) return false;
  Message message = slot(member, sequence).packet.share();
  if (!message.allocated()) return false;  // there is no memory: the next tick tries again
  const Header header = *Header::of(message);
  for (const Mark& mark : header.all()) {
    const Before before = precedes(mark);
    if (before == Before::missing || (before == Before::never && may_come_again(slot(member, sequence)))) return false;
  }
  std::array<std::byte, Header::kMost> bytes;
  (void)message.pop(header.size(), bytes.data());
  // Other copies of a message whose context has changed may name less: then what this one names is named again.
  for (const Mark& mark : header.all()) {
    Member* const before = header.changed ? nullptr : find(mark.host);
    if (before != nullptr && before->life == mark.life && before->delivered == mark.sequence) before->leaf = false;
  }
  member.delivered = sequence;
  member.leaf = true;
  const SessionRef speaker = member.speaker;
  high().demux(*speaker, std::move(message));  // it may push
  return true;
}

void Conversation::advance() noexcept {
  if (std::exchange(advancing_, true)) return;  // the call that is running goes on
  for (bool any = true; any;) {
    any = false;
    for (Member& member : members_)
      while (deliver_next(member)) any = true;
  }
  advancing_ = false;
}

/// Drops messages that all members have, once all their predecessors are dropped. Nobody waits for silent members.
void Conversation::settle() noexcept {
  for (bool any = true; any;) {
    any = false;
    for (Member& of : members_) {
      std::uint32_t all = of.delivered;
      for (const Member& one : members_)
        if (!one.out) all = std::min(all, has(one, of));
      for (; of.stable < all && past_is_gone(slot(of, of.stable + 1)); any = true) slot(of, ++of.stable) = {};
    }
  }
}

bool Conversation::past_is_gone(const Slot& given) noexcept {
  const auto header = Header::of(given.packet);
  return !header || std::ranges::all_of(header->all(), [this](const Mark& mark) {
    const Member* const of = find(mark.host);
    return of == nullptr || of->life != mark.life || mark.sequence <= of->stable;
  });
}

/// Asks `from` for what it has and this host lacks, as far as is known.
void Conversation::ask_for_missing(Member& from) noexcept {
  const Time now = psync_.host().now();
  if (from.asked != Time{} && now - from.asked < options_.interval / 2) return;
  Header wanted = header_of(Type::request);
  for (Member& of : members_) {
    const std::uint32_t last = std::min(has(from, of), of.stable + std::min(options_.window, ~of.stable));
    std::uint32_t each = 0;
    for (std::uint32_t before = of.delivered; before < last && each < 4; ++before) {  // so the last number is no trap
      const std::uint32_t next = before + 1;
      if (holds(of, next) && !slot(of, next).outdated) continue;
      if (wanted.count == Header::kMostMarks) break;
      wanted.add({of.host, of.life, next});
      ++each;
    }
  }
  if (wanted.count == 0) return;
  from.asked = now;
  send(from, wanted);
}

}  // namespace lrpc::netrpc::psync
