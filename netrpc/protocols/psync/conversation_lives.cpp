// The lives of a conversation's members: in which life each of them is, and what becomes of the messages of ended
// lives.
#include <algorithm>
#include <utility>

#include "netrpc/protocols/psync/protocol.h"

namespace lrpc::netrpc::psync {

namespace {

/// Puts `mark` into the header, or raises the mark of the same life. False: there is no room for one more.
bool merge(Header& header, const Mark& mark) noexcept {
  for (Mark& one : std::span(header.marks).first(header.count)) {
    if (one.host != mark.host || one.life != mark.life) continue;
    one.sequence = std::max(one.sequence, mark.sequence);
    return true;
  }
  if (header.count == Header::kMostMarks) return false;
  header.add(mark);
  return true;
}

}  // namespace

/// The member has begun anew: its messages count from 1, and it has lost what it had received. What this host pushes
/// from now on follows the former life. Otherwise a host that does not know its end could get a message of it
/// afterwards.
void Conversation::learn_life(Member& member, BootId life, bool says_so) noexcept {
  const Past* const again = past(member, life);
  const std::uint32_t delivered = again != nullptr ? again->delivered : 0;
  if (member.life != 0) {
    for (Member& other : members_)
      for (Slot& one : other.slots)
        if (&other != &member && one.sequence != 0) outlive(one, member, life);
    // Its last message can be named no more. Name the others' last messages, some of which it may have followed.
    for (Member& one : members_) one.leaf = one.leaf || (member.leaf && one.delivered != 0);
    leave(member, {member.life, member.delivered, says_so});
    for (Slot& one : member.slots) one = {};
    for (Member& other : members_) other.has[index(member)] = 0;
    std::ranges::fill(member.has, 0);
    member.leaf = true;
  }
  member.life = life;
  member.question = 0;  // an answer that is under way may be of a life before
  member.delivered = member.stable = member.skipped = delivered;
}

/// Nobody can ask for the messages of an ended life. If the context of `kept` names some of them, replaces them by what
/// precedes them and by the next life. A message that is not kept follows only messages that are not kept, so all
/// members' stable marks stand for its context. Those differ from host to host, and so do the copies' contexts.
void Conversation::outlive(Slot& kept, Member& member, BootId next) noexcept {
  const Header header = *Header::of(kept.packet);
  Header changed = header;
  changed.changed = true;
  changed.count = 0;
  bool follows = false;
  std::uint32_t last = 0;
  const auto of_life = [&](const Mark& mark) { return mark.host == member.host && mark.life == member.life; };
  for (const Mark& mark : header.all()) {
    if (!of_life(mark)) {
      changed.add(mark);
      continue;
    }
    follows = true;
    last = std::max(last, mark.sequence);
  }
  if (!follows || last > member.delivered) return;
  bool fits = merge(changed, {member.host, next, 0});
  for (const Member& of : members_)
    if (&of != &member && of.stable != 0) fits = fits && merge(changed, {of.host, of.life, of.stable});
  for (std::uint32_t sequence = last; sequence > member.stable; --sequence) {  // ends also if `last` is the last number
    if (!holds(member, sequence)) continue;
    const Header before = *Header::of(slot(member, sequence).packet);
    for (const Mark& mark : before.all())
      if (!of_life(mark)) fits = fits && merge(changed, mark);
  }
  Message packet = kept.packet.share();
  std::array<std::byte, Header::kMost> bytes;
  if (!fits || !packet.allocated() || packet.pop(header.size(), bytes.data()) == nullptr) return;
  std::byte* const to = packet.push(changed.size());
  if (to == nullptr) return;
  changed.encode(to);
  kept.packet = std::move(packet);
}

bool Conversation::believes(Member& member, BootId life) noexcept {
  if (member.life == life) return true;
  const Past* const known = past(member, life);
  if (known != nullptr && known->over) {
    ++psync_.statistics().duplicates;
  } else {
    ++psync_.statistics().refused;
    ask_for_life(member, life);
  }
  return false;
}

void Conversation::told(Member& member, BootId life) noexcept {
  if (&member == &members_[self_] || life == 0 || member.life == life || past(member, life) != nullptr) return;
  if (member.out) {
    learn_life(member, life, false);
  } else if (member.life == 0) {
    ask_for_life(member, life);
  }
}

/// The number stays the same until it is answered: a round trip may take longer than the pause between two questions.
void Conversation::ask_for_life(Member& member, BootId because_of) noexcept {
  const Time now = psync_.host().now();
  if (member.questioned != Time{} && now - member.questioned < options_.interval / 2) return;
  member.questioned = now;
  if (member.question == 0) member.because_of = because_of;
  while (member.question == 0) member.question = static_cast<std::uint32_t>(psync_.host().random());
  send_status(member, true, member.question);
}

/// Only a host that has received the question knows its number. The answer names the life in which it was received: the
/// life because of which the question was asked, or a later one.
void Conversation::life_answered(Member& member, const Mark& id) noexcept {
  if (member.question == 0 || member.question != id.sequence) return;
  member.question = 0;
  const Past* const known = past(member, id.life);
  const bool another = member.life != id.life && (known == nullptr || !known->over);
  if (member.because_of != id.life && member.because_of != member.life && past(member, member.because_of) == nullptr)
    leave(member, {member.because_of, 0, true});
  if (another) learn_life(member, id.life, true);
  advance();  // what follows messages of an ended life may come up now
}

/// Whether the message has come up to the protocol above, is missing, or will never come.
Conversation::Before Conversation::precedes(const Mark& mark) noexcept {
  Member* const member = find(mark.host);
  if (member == nullptr) return Before::given;
  if (mark.life == member->life) return mark.sequence <= member->delivered ? Before::given : Before::missing;
  const Past* const known = past(*member, mark.life);
  if (known != nullptr) return mark.sequence <= known->delivered ? Before::given : Before::never;
  if (member == &members_[self_]) return mark.sequence == 0 ? Before::given : Before::never;
  ask_for_life(*member, mark.life);
  return Before::missing;
}

/// `kept` follows a message that will never come here. Members that have that message may send `kept` with another
/// context. False: nobody has done so for `silence`.
bool Conversation::may_come_again(Slot& kept) noexcept {
  const Time now = psync_.host().now();
  if (kept.waits_since == Time{}) kept.waits_since = now;
  kept.outdated = now - kept.waits_since <= options_.silence;
  return kept.outdated;
}

}  // namespace lrpc::netrpc::psync
