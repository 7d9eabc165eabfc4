// One conversation: what this host knows of its members and of their messages.
#pragma once

#include <algorithm>
#include <vector>

#include "lrpc/netrpc/protocol.h"
#include "netrpc/protocols/psync/header.h"

namespace lrpc::netrpc::psync {

class Psync;
class Conversation;

struct PsyncOptions {
  std::uint32_t window = 64;  ///< The most messages of one member that are kept until all have them.
  Duration interval = std::chrono::milliseconds(20);
  Duration silence = std::chrono::seconds(5);
  std::uint32_t last_sequence = ~std::uint32_t{0};  ///< For tests: of the last message of one life.
};

/// The session through which a member's messages come up. A push goes to all members, like that of the conversation.
class Speaker final : public Session {
 public:
  Speaker(Conversation& conversation, const ParticipantSet& participants);
  [[nodiscard]] Errc push(Message message) noexcept override;
  /// Context without a name: of this member's last message.
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  void conversation_ends() noexcept { conversation_ = nullptr; }

 private:
  Conversation* conversation_;
};

/// Lives as long as somebody refers to it. While it lives, this host takes part in the conversation.
class Conversation final : public Session {
 public:
  /// Errors: invalid_argument (this host is no member; too many members).
  static Result<SessionRef> open(Psync& protocol, Protocol& high, const ParticipantSet& participants);
  ~Conversation() override;

  /// Sends to all other members. limit_reached: `window` messages of this host have not reached all yet, its present
  /// life has no more numbers for messages, or no memory.
  [[nodiscard]] Errc push(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  /// A packet from `host` has arrived. `packet` still has its header.
  void arrived(HostAddress host, const Header& header, const Message& packet) noexcept;
  /// The context of a message; with sequence 0, of the last one of `host` that has come up to the protocol above.
  [[nodiscard]] Errc context(HostAddress host, control::Context& asked) noexcept;
  [[nodiscard]] control::Outstanding outstanding() const noexcept;
  /// How many messages are kept, or wait for others.
  [[nodiscard]] std::size_t kept() const noexcept {
    std::size_t count = 0;
    for (const Member& member : members_)
      for (const Slot& one : member.slots) count += one.sequence != 0 ? 1 : 0;
    return count;
  }

 private:
  struct Slot {
    std::uint32_t sequence = 0;  ///< 0: it is empty.
    Message packet{};
    bool outdated = false;  ///< It is asked for again, because it follows a message that never comes here.
    Time waits_since{};     ///< Since when it waits for a copy with another context.
  };
  /// A life that a member has left, as far as is known.
  struct Past {
    BootId life = 0;
    std::uint32_t delivered = 0;
    bool over = false;  ///< The member has said so itself, not only others.
  };
  struct Member {
    HostAddress host;
    SessionRef lower{};  ///< Null: it is this host, or cannot be reached yet.
    SessionRef speaker{};
    BootId life = 0;  ///< Its present life. 0: nothing has been heard of it.
    std::array<Past, 4> before{};
    std::uint32_t delivered = 0;  ///< Up to here its messages have been given to the protocol above, or were lost.
    std::uint32_t stable = 0;     ///< Up to here all members have its messages.
    std::uint32_t skipped = 0;    ///< Up to here its messages may precede some that this host has skipped.
    bool leaf = false;            ///< No message that is here is known to follow its last one in all its copies.
    bool out = false;             ///< It is silent: nobody waits for it.
    Time heard{};
    Time asked{};
    std::uint32_t question = 0;        ///< The number by which it has been asked for its life. 0: no question is open.
    BootId because_of = 0;             ///< Why: the life that others, or a packet, had named.
    Time questioned{};                 ///< When it was asked for its life last.
    std::vector<std::uint32_t> has{};  ///< Up to which it has those of each member, as far as is known.
    std::vector<Slot> slots{};

    /// A host that skips what is not kept here must skip this member's messages up to this one.
    [[nodiscard]] std::uint32_t gone_up_to() const noexcept { return std::max(stable, skipped); }
  };

  Conversation(Psync& protocol, Protocol& high, const ParticipantSet& participants);
  [[nodiscard]] Status begin(std::span<const HostAddress> hosts);
  [[nodiscard]] Member* find(HostAddress host) noexcept {
    const auto known = std::ranges::find(members_, host, &Member::host);
    return known != members_.end() ? &*known : nullptr;
  }
  [[nodiscard]] std::size_t index(const Member& member) const noexcept {
    return static_cast<std::size_t>(&member - members_.data());
  }
  [[nodiscard]] std::uint32_t has(const Member& who, const Member& of) const noexcept {
    return &who == &members_[self_] ? of.delivered : who.has[index(of)];
  }
  [[nodiscard]] Slot& slot(Member& member, std::uint32_t sequence) noexcept {
    return member.slots[sequence % options_.window];
  }
  [[nodiscard]] bool holds(Member& member, std::uint32_t sequence) noexcept {
    return slot(member, sequence).sequence == sequence;
  }
  /// The member has begun another life. `says_so`: it has said so itself.
  void learn_life(Member& member, BootId life, bool says_so) noexcept;
  void outlive(Slot& kept, Member& member, BootId next) noexcept;
  /// Null: the member is not known to have left that life.
  [[nodiscard]] static const Past* past(const Member& member, BootId life) noexcept {
    const auto known = std::ranges::find(member.before, life, &Past::life);
    return known != member.before.end() ? &*known : nullptr;
  }
  static void leave(Member& member, const Past& life) noexcept {
    std::rotate(member.before.begin(), member.before.end() - 1, member.before.end());
    member.before.front() = life;
  }
  /// Whether a packet is of the member's present life. If not, it changes nothing, because it may have been under way
  /// for long: the member itself is asked.
  [[nodiscard]] bool believes(Member& member, BootId life) noexcept;
  /// Another member has named this one's life. That is believed only while this one is silent, never of lives that it
  /// has left.
  void told(Member& member, BootId life) noexcept;
  /// Asks at most once in half an interval.
  void ask_for_life(Member& member, BootId because_of) noexcept;
  void life_answered(Member& member, const Mark& id) noexcept;
  enum class Before : std::uint8_t { given, missing, never };
  [[nodiscard]] Before precedes(const Mark& mark) noexcept;
  [[nodiscard]] bool may_come_again(Slot& kept) noexcept;
  void note(Member& who, const Mark& mark) noexcept;

  void message(Member& from, const Header& header, const Message& packet) noexcept;
  void request(Member& from, const Header& header) noexcept;
  void give_up(Member& from, Member& of, std::uint32_t sequence) noexcept;
  void gone(const Header& header) noexcept;
  [[nodiscard]] bool deliver_next(Member& member) noexcept;
  void advance() noexcept;
  void settle() noexcept;
  /// Whether no direct predecessor of `given` is kept. `given` has come up to the protocol above.
  [[nodiscard]] bool past_is_gone(const Slot& given) noexcept;

  void ask_for_missing(Member& from) noexcept;
  /// `question`: the number of a question or of its answer; such a status says only how many messages this host has
  /// pushed. 0: an ordinary status.
  void send_status(Member& to, bool ask, std::uint32_t question = 0) noexcept;
  [[nodiscard]] bool too_long(const Member& to, std::size_t size) const noexcept;
  void send(Member& to, const Header& header) noexcept;
  [[nodiscard]] Errc send(Member& to, Message&& packet) noexcept;
  [[nodiscard]] Header header_of(Type type) const noexcept;
  [[nodiscard]] bool unsettled(bool of_silent) const noexcept;
  void tick() noexcept;
  void keep_ticking() noexcept;

  Psync& psync_;
  const PsyncOptions& options_;
  std::vector<Member> members_;
  std::size_t self_ = 0;
  bool advancing_ = false;
  bool busy_ = false;  ///< The last answer of unsettled(false). While true, tick_ runs each interval.
  Event tick_;
};

}  // namespace lrpc::netrpc::psync
