// An association: the keys that two hosts' present lives share, and what seals and opens messages with them.
#pragma once

#include "lrpc/netrpc/clock.h"
#include "netrpc/protocols/auth/cipher.h"
#include "netrpc/protocols/auth/keys.h"

namespace lrpc::netrpc::auth {

/// The counters that were seen: messages may arrive out of order, but none is accepted twice (RFC 6479's ring of
/// words).
class ReplayWindow {
 public:
  /// How far behind the newest a message may be.
  static constexpr std::uint64_t kSize = 1024;
  [[nodiscard]] bool fresh(std::uint64_t counter) const noexcept;
  /// Precondition: `counter` is authenticated and fresh.
  void accept(std::uint64_t counter) noexcept;
  [[nodiscard]] std::uint64_t highest() const noexcept { return highest_; }

 private:
  static constexpr std::uint64_t kWords = 32;
  static_assert((kWords - 1) * 64 >= kSize);
  std::uint64_t highest_ = 0;
  std::array<std::uint64_t, kWords> seen_{};
};

/// An ephemeral key pair, for one handshake. Wiped on destruction.
struct EphemeralKey {
  PublicKey pub{};
  std::array<std::uint8_t, 32> secret{};
  EphemeralKey() = default;
  EphemeralKey(const EphemeralKey&) = delete;
  EphemeralKey& operator=(const EphemeralKey&) = delete;
  ~EphemeralKey();
  void generate() noexcept;
  void wipe() noexcept;
};

/// The outcome of opening a message. Only `ok` messages are delivered.
enum class Opened : std::uint8_t { ok, replayed, forged, no_memory };

/// Whether `reply` names the best cipher that both hosts offer, or none if they have none in common.
[[nodiscard]] bool rightly_chosen(const Hello& hello, const HelloReply& reply) noexcept;

class Association {
 public:
  Association() = default;
  Association(const Association&) = delete;
  Association& operator=(const Association&) = delete;
  ~Association() { wipe(); }

  /// Derives the keys from all fields of the HELLO and the reply. `mine`: this side's ephemeral key; this side is the
  /// initiator if `initiator`. False: the peer's public key is invalid, or there is no cipher, or not the right one;
  /// the association stays dead.
  [[nodiscard]] bool establish(const Hello& hello, const HelloReply& reply, const EphemeralKey& mine, bool initiator,
                               const Key& key, Time now) noexcept;
  /// Ends the association and overwrites its keys.
  void wipe() noexcept;

  /// Precondition: alive, not spent. Encrypts `message` (which begins with the protocol number) in place, or in a copy
  /// if its bytes are shared, and pushes the header. Errors: message_too_long; limit_reached (no buffer).
  [[nodiscard]] Errc seal(HostAddress sender, HostAddress receiver, Message& message) noexcept;
  /// Decrypts `message`, which begins after the header. `sealed`: the kSealed bytes of the header, followed by the tag.
  /// The last forgery that the key's limit allows ends the association.
  [[nodiscard]] Opened open(const DataHeader& header, const std::byte* sealed, Message& message) noexcept;

  [[nodiscard]] bool alive() const noexcept { return local_ != 0; }
  [[nodiscard]] std::uint32_t local() const noexcept { return local_; }    ///< Its number in the peer's headers.
  [[nodiscard]] std::uint32_t remote() const noexcept { return remote_; }  ///< Its number in this host's headers.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_; }
  [[nodiscard]] bool initiator() const noexcept { return initiator_; }
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  [[nodiscard]] std::uint64_t highest_opened() const noexcept { return window_.highest(); }  ///< A counter.
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }  ///< As KeyLimits counts them.
  /// The key has sealed as much as it may: seal() must not be called any more.
  [[nodiscard]] bool spent() const noexcept { return blocks_ >= limits.blocks || sent_ >= kMostSent; }
  [[nodiscard]] Time born() const noexcept { return born_; }
  /// See Hello::generation.
  [[nodiscard]] bool better_than(const Association& other) const noexcept {
    if (generation_ != other.generation_) return generation_ > other.generation_;
    return initiator_host_ < other.initiator_host_;
  }

  bool confirmed = false;  ///< The peer has shown that it has the keys.
  bool doubted = false;    ///< The peer has said that it does not know this association (any more).
  Time last_used{};        ///< When it was last opened or sealed with.
  KeyLimits limits;        ///< Set by establish(), from its cipher.

 private:
  std::uint32_t local_ = 0;
  std::uint32_t remote_ = 0;
  std::uint32_t generation_ = 0;
  HostAddress initiator_host_;
  bool initiator_ = false;
  Time born_{};
  static constexpr std::uint64_t kMostSent = std::uint64_t{1} << 60;  ///< So no nonce is used twice.
  std::uint64_t sent_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t forgeries_ = 0;
  ReplayWindow window_;
  SealingKey send_key_;
  SealingKey receive_key_;
};

}  // namespace lrpc::netrpc::auth
