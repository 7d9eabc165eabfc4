// What AUTH keeps for one other host: the associations with it, the handshake that makes the next one, and the messages
// that wait for it.
#pragma once

#include <algorithm>
#include <vector>

#include "lrpc/netrpc/event_manager.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/protocols/auth/association.h"
#include "netrpc/src/round_trip.h"

namespace lrpc::netrpc::auth {

/// Settings that all peers share. Owned by the protocol.
struct Settings {
  std::uint64_t rekey_messages = std::uint64_t{1} << 30;
  Duration rekey_after = std::chrono::hours(1);
  std::size_t pending = 16;
  /// The layer below tells peers apart by host and port. A peer that has a key of its own may then be at any address,
  /// for example behind address translation: its key says who it is, and its packets show where it is.
  bool anywhere = false;
  Ciphers ciphers = available_ciphers();              ///< To be used, of those that this machine has.
  KeyLimits limits{.forgeries = KeyLimits{}.blocks};  ///< For tests: less than the ciphers allow.
  /// How long a replaced association is kept, because messages that it has sealed may still be under way.
  Duration linger = std::chrono::seconds(30);
  /// If nothing has come from a peer while silence_messages were sent to it over `silence`, it may have lost the
  /// association without being able to say so. A handshake finds out, at most one in each `silence`.
  Duration silence = std::chrono::seconds(5);
  std::uint32_t silence_messages = 3;
};

/// Called in the host's monitor. Nothing here blocks; per-message work allocates nothing.
class Peer {
 public:
  /// `below`: AUTH's lower protocol; `self`: the AUTH protocol. `counted`: where to count. All outlive the peer.
  Peer(Protocol& self, Protocol& below, control::Statistics& counted, const Settings& settings, HostAddress host,
       Key key);

  /// Seals and sends a message that begins with its protocol number. While the first handshake runs the message waits,
  /// or is dropped if too many wait. Errors: message_too_long, limit_reached, not_permitted (no key any more), and
  /// those of the layer below.
  [[nodiscard]] Errc push(Message message) noexcept;

  // Packets from the peer whose MAC has been checked with key().
  /// `lower`: the session through which the packet came.
  void hello(const Hello& hello, Session& lower) noexcept;
  void challenge(const Challenge& challenge) noexcept;
  void hello_reply(const HelloReply& reply, Session& lower) noexcept;
  /// The association that the peer's packets name by this number; null: there is none.
  [[nodiscard]] Association* find(std::uint32_t association) noexcept {
    for (Association& known : associations_)
      if (known.alive() && known.local() == association) return &known;
    return nullptr;
  }
  /// Opens a sealed message; it then begins with its protocol number. False: dropped, and counted. `association`: the
  /// one that find() returns for `header`; `sealed`: the header's bytes; `lower`: the session through which it came.
  [[nodiscard]] bool open(Association& association, const DataHeader& header, const std::byte* sealed, Message& message,
                          Session& lower) noexcept;
  [[nodiscard]] bool handshaking() const noexcept { return running_; }
  /// Whether messages to the peer go to where `lower` leads.
  [[nodiscard]] bool sends_through(const Session& lower) const noexcept {
    return !settings_.anywhere || lower_.get() == &lower;
  }
  /// Whether `hello` repeats the HELLO that was accepted last.
  [[nodiscard]] bool accepted(const Hello& hello) const noexcept;
  /// Whether the peer has shown, in this life of ours, that it has the key.
  [[nodiscard]] bool associated() const noexcept {
    return std::ranges::any_of(associations_, [](const Association& one) { return one.alive(); });
  }

  /// Whether the last handshake has shown that the two hosts have no cipher in common. False again when the key has
  /// changed since, or the peer does not answer.
  [[nodiscard]] bool no_cipher() const noexcept { return no_cipher_; }

  /// Sets another key, or none (null). Associations under the old key end at once.
  void rekeyed(const Key* key) noexcept;
  /// Wipes associations that a better one has replaced, after Settings::linger or at once (`everything`).
  void sweep(bool everything) noexcept;
  /// Opens the session below, if there is none. Errors: those of the protocol below.
  [[nodiscard]] Status open_lower() noexcept;
  /// The session below, opened if there is none. Null: open_lower() fails.
  [[nodiscard]] Session* lower() noexcept { return open_lower() ? lower_.get() : nullptr; }

  [[nodiscard]] HostAddress host() const noexcept { return host_; }
  [[nodiscard]] const Key& key() const noexcept { return key_; }
  [[nodiscard]] bool has_key() const noexcept { return has_key_; }
  [[nodiscard]] const Salt& challenge() const noexcept { return challenge_; }
  [[nodiscard]] const control::RoundTrip& round_trip() const noexcept { return round_trip_; }

  std::size_t sessions = 0;  ///< AuthSessions that refer to this peer.
  Time last_used{};

 private:
  static constexpr std::size_t kAssociations = 4;
  static constexpr int kTries = 10;       ///< HELLOs without an answer until waiting messages are dropped.
  static constexpr int kChallenges = 16;  ///< New challenges within one handshake: more are somebody's replays.

  [[nodiscard]] Association* sending() noexcept;
  [[nodiscard]] bool old(const Association& association) const noexcept;
  [[nodiscard]] bool silent() const noexcept;
  [[nodiscard]] Association& free_association() noexcept;
  [[nodiscard]] std::uint32_t new_number() noexcept;
  [[nodiscard]] std::uint32_t next_generation() const noexcept;
  void begin_handshake() noexcept;
  void end_handshake() noexcept;
  void send_hello() noexcept;
  void try_again() noexcept;
  bool heard(BootId boot_id) noexcept;
  void heard_through(Session& lower) noexcept;
  [[nodiscard]] bool best_in_use(const Association& association) const noexcept;
  void forget_place() noexcept {
    lower_ = {};
    place_ = Place::sought;
  }
  /// Forgets where the peer was heard: its key does not prove any more that it is there.
  void leave_place() noexcept {
    if (!settings_.anywhere) return;
    forget_place();
    if (running_) begin_handshake();  // its HELLO went to the old place
  }
  void send_pending() noexcept;
  void drop_pending() noexcept;
  [[nodiscard]] Association* establish(const Hello& hello, const HelloReply& reply, const EphemeralKey& mine,
                                       bool initiator) noexcept;
  [[nodiscard]] Errc seal_and_send(Association& association, Message message, Time now) noexcept;
  [[nodiscard]] Errc send(Message message) noexcept;
  void answer(Session& lower, Message packet) noexcept;
  /// What this host says of itself in a handshake.
  [[nodiscard]] Hello proposal(std::uint32_t generation, const EphemeralKey& mine, const Salt& challenge) noexcept;
  [[nodiscard]] Ends ends() const noexcept;

  Protocol& self_;
  Protocol& below_;
  control::Statistics& counted_;
  const Settings& settings_;
  const HostAddress host_;
  Key key_;
  bool has_key_ = true;
  SessionRef lower_;
  /// What is known of `lower_`, if peers may be anywhere.
  enum class Place : std::uint8_t {
    sought,  ///< It leads to the peer's address.
    home,    ///< The same, and the peer has answered a HELLO there: only a handshake that the peer begins moves it.
    found,   ///< It leads to where the peer was heard last.
  };
  Place place_ = Place::sought;
  BootId boot_id_ = 0;
  std::uint32_t unanswered_ = 0;  ///< Messages sealed since the peer last showed that it has our keys, ...
  Time unanswered_since_{};       ///< ... and when the first of them was.
  std::array<Association, kAssociations> associations_;
  std::vector<Message> pending_;
  bool no_cipher_ = false;
  Time no_cipher_since_{};   ///< When the last handshake showed that.
  Ciphers their_offer_ = 0;  ///< The ciphers that the peer had then.

  // As responder.
  Salt challenge_{};  ///< What a HELLO must carry; changes with each accepted HELLO.
  Salt accepted_{};   ///< The salt of the last HELLO accepted, ...
  HelloReply reply_;  ///< ... and our reply, to send again if that HELLO is repeated.

  // As initiator.
  bool running_ = false;
  Hello hello_;
  Salt known_challenge_{};  ///< The peer's latest one.
  EphemeralKey ephemeral_;
  int tries_ = 0;
  int challenges_ = 0;
  Time sent_at_{};
  Duration timeout_{};
  control::RoundTrip round_trip_;
  SmoothedTime handshake_time_;
  Event timer_;
};

}  // namespace lrpc::netrpc::auth
