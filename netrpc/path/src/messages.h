// What two remote brokers say to each other. This file is the protocol's document.
//
// Little-endian, as the images are; no padding. A name: u8 length and characters. A text: u16 length and bytes.
//
//   command 1, BIND      u64 client's boot id · name · name of the interface · u16 major · u16 minor · u64 hash
//                        u32 wait ms
//             reply      u16 code; 0: u64 server's boot id · u64 binding id · 16 bytes nonce; else: text
//   command 2, CALL      prologue (56 bytes) · packed image of the arguments
//             prologue   u64 server's boot id · u64 hash · u64 binding id · 16 bytes nonce · u16 procedure · u16 flags
//                        (1 one-way) · u32 remaining ms (0: no limit) · u32 length of the image · u32 zero
//             reply      u16 call status · u16 flags (1 the binding has ended) · u32 length
//                        packed image of the results
//                        of an error that the procedure returned with a text (status 0xc000 | code): the text
//   command 3, UNBIND    u64 server's boot id · u64 binding id · 16 bytes nonce
//             reply      empty
//   command 4, PING      u64 client's boot id · u16 number · u64 binding id each
//             reply      u64 server's boot id · u16 number · u8 each: 1 alive
//   command 5, GROUP_CALL  the same for all members of a group: each takes the first key with its own boot id
//             prologue   u64 hash · u16 procedure · u16 flags · u32 remaining ms · u32 length of the image
//                        u16 number of keys · u16 zero · u64 boot id · u64 binding id · 16 bytes nonce each
//             then       packed image of the arguments
//             reply      as to a CALL with that key
//
// A boot id is random for every start of a broker. A CALL for another boot id is call_failed without being executed: so
// a restart never executes a call twice, whatever the network under it remembers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::netpath {

enum class Command : std::uint16_t { bind = 1, call = 2, unbind = 3, ping = 4, group_call = 5 };

inline constexpr std::size_t kPrologue = 56;
inline constexpr std::size_t kReplyPrologue = 8;
/// The longest image, as in NetworkPath.
inline constexpr std::size_t kMaxImage = 16 * 1024;
/// A whole CALL, or its reply, at most.
inline constexpr std::size_t kMaxCallMessage = kPrologue + kMaxImage;
inline constexpr std::size_t kMaxPinged = 1024;
inline constexpr std::size_t kKey = 32;
inline constexpr std::size_t kMaxMembers = 64;
/// What stands in front of the image of a GROUP_CALL.
[[nodiscard]] constexpr std::size_t group_prologue(std::size_t members) noexcept { return 24 + members * kKey; }
inline constexpr std::size_t kMaxGroupCallMessage = group_prologue(kMaxMembers) + kMaxImage;

/// A binding at its server's host, as its client's host knows it.
struct BindingKey {
  std::uint64_t boot = 0;
  std::uint64_t id = 0;
  shim::Nonce nonce{};
  friend bool operator==(const BindingKey&, const BindingKey&) = default;
};

struct BindMessage {
  std::uint64_t client_boot = 0;
  std::string name;
  shim::OwnedInterfaceId interface;
  std::uint32_t wait_ms = 0;
};
struct BindAnswer {
  Errc code = Errc::ok;
  BindingKey key;    ///< If ok.
  std::string text;  ///< If not.
};
struct CallPrologue {
  BindingKey key;
  std::uint64_t hash = 0;
  std::uint16_t procedure = 0;
  bool one_way = false;
  std::uint32_t remaining_ms = 0;
};
struct CallMessage {
  CallPrologue prologue;
  std::span<const std::byte> image;  ///< A view into the message.
};
struct CallAnswer {
  std::uint16_t status = 0;
  bool ended = false;
  std::span<const std::byte> image;
};
struct PingMessage {
  std::uint64_t client_boot = 0;
  std::vector<std::uint64_t> bindings;
};
struct PingAnswer {
  std::uint64_t server_boot = 0;
  std::vector<bool> alive;  ///< In the order asked.
};

[[nodiscard]] std::string encode(const BindMessage& message);
[[nodiscard]] std::string encode(const BindAnswer& message);
[[nodiscard]] std::string encode(const PingMessage& message);
[[nodiscard]] std::string encode(const PingAnswer& message);
[[nodiscard]] std::string encode_unbind(const BindingKey& key);
/// The prologue of a CALL with an image of `size` bytes, which the caller appends.
void encode_prologue(const CallPrologue& prologue, std::size_t size, std::span<std::byte, kPrologue> to) noexcept;
/// The prologue of a GROUP_CALL with these keys, at most kMaxMembers; the key of `prologue` is not sent. Writes
/// group_prologue() bytes.
void encode_group_prologue(const CallPrologue& prologue, std::span<const BindingKey> keys, std::size_t size,
                           std::span<std::byte> to) noexcept;
void encode_reply_prologue(std::uint16_t status, bool ended, std::size_t size,
                           std::span<std::byte, kReplyPrologue> to) noexcept;

// The reverse, over hostile bytes in private memory. nullopt: the bytes are not exactly one such message.
[[nodiscard]] std::optional<BindMessage> decode_bind(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<BindAnswer> decode_bind_answer(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<CallMessage> decode_call(std::span<const std::byte> bytes) noexcept;
/// As a CALL to the member with this boot id. If no key has this boot id, the key of the result has boot id 0.
[[nodiscard]] std::optional<CallMessage> decode_group_call(std::span<const std::byte> bytes,
                                                           std::uint64_t boot) noexcept;
[[nodiscard]] std::optional<CallAnswer> decode_call_answer(std::span<const std::byte> bytes) noexcept;
[[nodiscard]] std::optional<BindingKey> decode_unbind(std::span<const std::byte> bytes) noexcept;
[[nodiscard]] std::optional<PingMessage> decode_ping(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<PingAnswer> decode_ping_answer(std::span<const std::byte> bytes);

[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace lrpc::netpath
