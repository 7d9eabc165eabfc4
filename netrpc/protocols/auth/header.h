// AUTH on the wire. Every packet begins {type u8, version u8, sender u32, receiver u32}; the rest depends on the type.
//
//   initiator                              responder
//   HELLO (challenge unknown: zeros) ---->
//                                    <---- CHALLENGE (echo of the salt; the one challenge that counts for this peer)
//   HELLO (challenge)                ---->                       accepted once: the challenge changes
//                                    <---- HELLO_REPLY (echo of the salt; the challenge for next time)
//   DATA                             ---->                       the first one confirms to the responder the keys
//
// A HELLO that an attacker repeats carries an old challenge and costs the responder one MAC. A repeated REPLY or
// CHALLENGE lacks the salt of the running handshake. An initiator that knows the challenge from last time needs one
// round trip. A CHALLENGE whose echo names an association {association u32, zeros} says "I do not know this
// association": see Peer.
//
// HELLO says which ciphers its sender has; HELLO_REPLY says which ones the responder has, and which one is used. That
// must be the best one that both have, which either side can check. Both sets and the choice go into the keys. If the
// two have none in common, HELLO_REPLY says so, and there is no association.
//
// In version 1 the responder did not say which ciphers it has. Versions do not interoperate; all have the same prefix.
#pragma once

#include <optional>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/message.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/protocols/auth/cipher.h"

namespace lrpc::netrpc::auth {

inline constexpr std::uint8_t kVersion = 2;

enum class Type : std::uint8_t { hello = 1, challenge = 2, hello_reply = 3, data = 4 };

using Salt = std::array<std::uint8_t, 16>;
using Mac = std::array<std::uint8_t, 16>;
using PublicKey = std::array<std::uint8_t, 32>;

/// Who sends to whom: authenticated in every packet.
struct Ends {
  HostAddress sender;
  HostAddress receiver;
};

/// Asks for an association. `association`: the number that the other side shall put into its packets. `generation`: the
/// sender's proposal, one more than its latest with this peer; the reply decides. If several associations exist at
/// once, both sides use the one with the highest generation; of equal ones, the one whose initiator has the lower
/// address.
struct Hello {
  static constexpr std::size_t kSize = 10 + 13 + 32 + 16 + 16 + 16;
  Ends ends;
  BootId boot_id = 0;
  std::uint32_t association = 0;
  std::uint32_t generation = 0;
  Ciphers ciphers = 0;  ///< Those that the sender has.
  PublicKey key{};      ///< Ephemeral, X25519.
  Salt salt{};          ///< Random: names this handshake.
  Salt challenge{};     ///< The responder's, as far as known; else zeros.
};

struct Challenge {
  static constexpr std::size_t kSize = 10 + 16 + 16 + 16;
  Ends ends;
  Salt echo{};       ///< The HELLO's salt, or the number of an unknown association.
  Salt challenge{};  ///< Zeros: the sender has no state for this peer. Ask with HELLO.
};

/// The same fields as in HELLO, of the responder. Its `challenge` is for the initiator's next HELLO.
struct HelloReply {
  static constexpr std::size_t kSize = Hello::kSize + 16 + 1;
  Hello hello;
  Salt echo{};
  Ciphers cipher = 0;  ///< The one that is used; 0: they have none in common, and there is no association.
};

/// The header of a sealed message. All fields but the tag are additional data, which the tag authenticates. The
/// ciphertext of {protocol_num u32, message} follows.
struct DataHeader {
  static constexpr std::size_t kSealed = 10 + 16;  ///< Bytes of additional data.
  static constexpr std::size_t kSize = kSealed + 16;
  Ends ends;
  std::uint32_t association = 0;  ///< The receiver's number for it.
  std::uint64_t counter = 0;      ///< 1, 2, ... in each direction: the nonce.
  std::uint32_t length = 0;       ///< Bytes of ciphertext: Ethernet adds padding.
};

/// What AUTH adds to a message.
inline constexpr std::size_t kOverhead = DataHeader::kSize + sizeof(ProtocolNumber);

using MacKey = std::array<std::uint8_t, 32>;

// Encoders write kSize bytes, with the MAC under `key`. Decoders check the MAC in constant time (null: not authentic).
// They need a private copy of the bytes, whose type and version their caller has checked with decode_prefix().
void encode(const Hello& hello, const MacKey& key, std::byte* to) noexcept;
void encode(const Challenge& challenge, const MacKey& key, std::byte* to) noexcept;
void encode(const HelloReply& reply, const MacKey& key, std::byte* to) noexcept;
[[nodiscard]] std::optional<Hello> decode_hello(const std::byte* from, const MacKey& key) noexcept;
[[nodiscard]] std::optional<Challenge> decode_challenge(const std::byte* from, const MacKey& key) noexcept;
[[nodiscard]] std::optional<HelloReply> decode_hello_reply(const std::byte* from, const MacKey& key) noexcept;
/// `packet` under `key`, as a message. Without memory it is not allocated().
template <class Packet>
[[nodiscard]] Message message_of(const Packet& packet, const MacKey& key, BufferPool& pool) noexcept {
  Message message = Message::make(pool, Packet::kSize);
  if (message.allocated()) encode(packet, key, message.bytes().data());
  return message;
}
/// Writes the kSealed bytes that are the additional data.
void encode(const DataHeader& header, std::byte* to) noexcept;

/// No packet is shorter.
inline constexpr std::size_t kLeast = DataHeader::kSize;
static_assert(kLeast <= Challenge::kSize && kLeast <= Hello::kSize);

/// The first kPrefix bytes of every packet: its type, and who claims to send it to whom. Not authenticated yet.
inline constexpr std::size_t kPrefix = 10;
struct Prefix {
  Type type = Type::data;
  std::uint8_t version = kVersion;
  Ends ends;
};
/// Null: an unknown type. The version may differ from kVersion.
[[nodiscard]] std::optional<Prefix> decode_prefix(const std::byte* from) noexcept;
/// From kSealed bytes that begin with a prefix of Type::data.
[[nodiscard]] DataHeader decode_data(const std::byte* from) noexcept;

}  // namespace lrpc::netrpc::auth
