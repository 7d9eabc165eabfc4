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
  std::uint32_t window = 64;  ///< Messages of one member that not all have been given.
  Duration interval = std::chrono::milliseconds(20);
  Duration silence = std::chrono::seconds(5);
};

/// What a member's messages come up through. A push goes to all members, as that of the conversation does.
class Speaker final : public Session {
 public:
  Speaker(Conversation& conversation, const ParticipantSet& participants);
  [[nodiscard]] Errc push(Message message) noexcept override;
  /// Context: of what this member has pushed.
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  void conversation_ends() noexcept { conversation_ = nullptr; }

 private:
  Conversation* conversation_;
};

/// Lives as long as somebody refers to it: then this host takes part.
class Conversation final : public Session {
 public:
  /// Errors: invalid_argument (this host is no member; too many members).
  static Result<SessionRef> open(Psync& protocol, Protocol& high, const ParticipantSet& participants);
  ~Conversation() override;

  /// To all other members. limit_reached: `window` messages of this host have not been given to all yet.
  [[nodiscard]] Errc push(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  /// From `host`. The packet has its header still.
  void arrived(HostAddress host, const Header& header, const Message& packet) noexcept;
  /// The context of a message; with sequence 0 that of the last one of `host` that the protocol above has been given.
  [[nodiscard]] Errc context(HostAddress host, control::Context& asked) noexcept;
  [[nodiscard]] control::Outstanding outstanding() const noexcept;
  /// Messages that are kept, or wait for others.
  [[nodiscard]] std::size_t kept() const noexcept;

 protected:
  void unreferenced() noexcept override;

 private:
  struct Slot {
    std::uint32_t sequence = 0;  ///< 0: it is empty.
    Message packet{};
    bool outdated = false;  ///< It is asked for again, with another context,
    Time waits_since{};     ///< from this time on.
  };
  /// A life that a member is in no more, as far as is known.
  struct Past {
    BootId life = 0;
    std::uint32_t delivered = 0;
    bool over = false;  ///< It has said so itself, not only others.
  };
  struct Member {
    HostAddress host;
    SessionRef lower{};  ///< Null: it is this host, or was not to be reached yet.
    SessionRef speaker{};
    BootId life = 0;  ///< 0: nothing has been heard of it.
    std::array<Past, 4> before{};
    std::uint32_t delivered = 0;  ///< Up to here its messages have been given to the protocol above, or were lost.
    std::uint32_t stable = 0;     ///< Up to here all members have them.
    std::uint32_t skipped = 0;    ///< Up to here one may precede some that this host has skipped.
    bool leaf = false;            ///< Nothing that is here follows its last one.
    bool out = false;             ///< It is silent: nobody waits for it.
    Time heard{};
    Time asked{};
    std::uint32_t question = 0;  ///< It has been asked for its life with this number. 0: it has not, or has answered.
    BootId because_of = 0;       ///< Of that question: the life that others, or a packet, had told of.
    Time questioned{};           ///< When it was asked for its life last.
    std::vector<std::uint32_t> has{};  ///< Up to which it has been given those of each member, as far as is known.
    std::vector<Slot> slots{};

    /// Whoever skips what is not kept here must skip its messages up to this one.
    [[nodiscard]] std::uint32_t gone_up_to() const noexcept { return std::max(stable, skipped); }
  };

  Conversation(Psync& protocol, Protocol& high, const ParticipantSet& participants);
  [[nodiscard]] Status begin(std::span<const HostAddress> hosts);
  [[nodiscard]] Member* find(HostAddress host) noexcept;
  [[nodiscard]] std::size_t index(const Member& member) const noexcept {
    return static_cast<std::size_t>(&member - members_.data());
  }
  [[nodiscard]] std::uint32_t has(const Member& who, const Member& of) const noexcept {
    return &who == &members_[self_] ? of.delivered : who.has[index(of)];
  }
  [[nodiscard]] Slot& slot(Member& member, std::uint32_t sequence) noexcept;
  [[nodiscard]] bool holds(Member& member, std::uint32_t sequence) noexcept {
    return slot(member, sequence).sequence == sequence;
  }
  /// `says_so`: the member itself, not others.
  void learn_life(Member& member, BootId life, bool says_so) noexcept;
  void outlive(Slot& kept, Member& member, BootId next) noexcept;
  /// Null: it has not been in that life, as far as is known, or is in it.
  [[nodiscard]] static const Past* past(const Member& member, BootId life) noexcept {
    const auto known = std::ranges::find(member.before, life, &Past::life);
    return known != member.before.end() ? &*known : nullptr;
  }
  static void leave(Member& member, const Past& life) noexcept;
  /// Whether a packet is of the life that the member is in. If not, it changes nothing, for it may have been under way
  /// for long: the member itself is asked.
  [[nodiscard]] bool believes(Member& member, BootId life) noexcept;
  /// Another member tells of this one's life. That is believed while this one is silent; not of lives that it has left.
  void told(Member& member, BootId life) noexcept;
  /// At most each half interval.
  void ask_for_life(Member& member, BootId because_of) noexcept;
  void life_answered(Member& member, const Mark& id) noexcept;
  enum class Before : std::uint8_t { given, missing, never };
  [[nodiscard]] Before precedes(const Mark& mark) noexcept;
  [[nodiscard]] bool may_come_again(Slot& kept) noexcept;
  void note(Member& who, const Mark& mark) noexcept;

  void message(Member& from, const Header& header, const Message& packet) noexcept;
  void request(Member& from, const Header& header) noexcept;
  void gone(const Header& header) noexcept;
  /// Of a message that is held. Nothing is taken off it.
  [[nodiscard]] static Header header_of(const Message& packet) noexcept;
  [[nodiscard]] bool deliver_next(Member& member) noexcept;
  void advance() noexcept;
  void settle() noexcept;
  /// Whether nothing is kept of what directly precedes a message that has been given to the protocol above.
  [[nodiscard]] bool past_is_gone(const Slot& given) noexcept;

  void ask_for_missing(Member& from) noexcept;
  /// `question`: of a question or its answer; then it says only how many messages this host has pushed.
  void send_status(Member& to, bool ask, std::uint32_t question = 0) noexcept;
  void send(Member& to, const Header& header) noexcept;
  void send(Member& to, Message&& packet) noexcept;
  [[nodiscard]] Header header_of(Type type) const noexcept;
  [[nodiscard]] bool unsettled(bool of_silent) const noexcept;
  void tick() noexcept;
  void keep_ticking() noexcept;

  Psync& psync_;
  const PsyncOptions& options_;
  std::vector<Member> members_;
  std::size_t self_ = 0;
  bool advancing_ = false;
  bool busy_ = false;  ///< Members that are heard lack something: the tick runs at its interval.
  Event tick_;
};

}  // namespace lrpc::netrpc::psync
