// An association: the keys that two hosts' present lives share, and what seals and opens messages with them.
#pragma once

#include "lrpc/netrpc/clock.h"
#include "netrpc/protocols/auth/cipher.h"
#include "netrpc/protocols/auth/keys.h"

namespace lrpc::netrpc::auth {

/// Which counters have been seen: messages arrive in another order, but none twice (RFC 6479's ring of words).
class ReplayWindow {
 public:
  /// How far behind the newest a message may be.
  static constexpr std::uint64_t kSize = 1024;
  [[nodiscard]] bool fresh(std::uint64_t counter) const noexcept;
  /// Only with an authenticated counter that is fresh.
  void accept(std::uint64_t counter) noexcept;
  [[nodiscard]] std::uint64_t highest() const noexcept { return highest_; }

 private:
  static constexpr std::uint64_t kWords = 32;
  static_assert((kWords - 1) * 64 >= kSize);
  std::uint64_t highest_ = 0;
  std::array<std::uint64_t, kWords> seen_{};
};

/// An ephemeral key pair, for one handshake. Wiped when it goes.
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

/// Opened messages are right, or they are not delivered.
enum class Opened : std::uint8_t { ok, replayed, forged, no_memory };

/// Whether `reply` says what follows from what the two have offered.
[[nodiscard]] bool rightly_chosen(const Hello& hello, const HelloReply& reply) noexcept;

class Association {
 public:
  Association() = default;
  Association(const Association&) = delete;
  Association& operator=(const Association&) = delete;
  ~Association() { wipe(); }

  /// Derives the keys from all that the HELLO and the reply say. `mine`: the ephemeral key of the side that calls,
  /// which is the initiator's if `initiator`. False: the peer's public key is none, or the cipher is not rightly
  /// chosen; the association stays dead.
  [[nodiscard]] bool establish(const Hello& hello, const HelloReply& reply, const EphemeralKey& mine, bool initiator,
                               const Key& key, Time now) noexcept;
  /// Dead from now on, its keys overwritten.
  void wipe() noexcept;

  /// Precondition: alive, not spent. Encrypts `message` (which begins with the protocol number) in place, or in a copy
  /// if somebody shares its bytes, and puts the header in front. message_too_long; limit_reached: no buffer.
  [[nodiscard]] Errc seal(HostAddress sender, HostAddress receiver, Message& message) noexcept;
  /// The reverse. `message` begins behind the header; `sealed`: the kSealed bytes of the header; `tag` follows them.
  /// The last forgery that its key may refuse is its end.
  [[nodiscard]] Opened open(const DataHeader& header, const std::byte* sealed, Message& message) noexcept;

  [[nodiscard]] bool alive() const noexcept { return local_ != 0; }
  [[nodiscard]] std::uint32_t local() const noexcept { return local_; }    ///< What the peer writes into its headers.
  [[nodiscard]] std::uint32_t remote() const noexcept { return remote_; }  ///< What we write into ours.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_; }
  [[nodiscard]] bool initiator() const noexcept { return initiator_; }
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  [[nodiscard]] std::uint64_t highest_opened() const noexcept { return window_.highest(); }  ///< Of the counters.
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }  ///< As KeyLimits counts them.
  /// Its key has sealed as much as it may: seal() is not for it any more.
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
  static constexpr std::uint64_t kMostSent = std::uint64_t{1} << 60;  ///< No nonce comes again.
  std::uint64_t sent_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t forgeries_ = 0;
  ReplayWindow window_;
  SealingKey send_key_;
  SealingKey receive_key_;
};

}  // namespace lrpc::netrpc::auth
