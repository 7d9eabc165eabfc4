// CHANNEL's header (docs/NETWORK.md, "On the wire").
#pragma once

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc {

/// What a packet is: exactly one of these. Requests, please-acks, boot queries and questions go from client to server,
/// the others from server to client. Boot queries for channel 0, and their answers, go in either direction.
namespace channel_flags {
inline constexpr std::uint16_t kRequest = 0x01;
inline constexpr std::uint16_t kPleaseAck = 0x02;  ///< A probe: are you still executing this request? No data.
inline constexpr std::uint16_t kBootQuery = 0x04;  ///< Asks for the receiver's boot identifier.
inline constexpr std::uint16_t kReply = 0x08;
inline constexpr std::uint16_t kAck = 0x10;  ///< I have the request and am executing it.
inline constexpr std::uint16_t kInProgress =
    0x20;  ///< I am executing an older request of this channel: send again later.
inline constexpr std::uint16_t kRebooted = 0x40;  ///< The life that the request is meant for is over.
inline constexpr std::uint16_t kBootAnswer = 0x80;
/// There will be no reply to this packet. `error`: message_too_long if the reply is too long; other values are only for
/// traces.
inline constexpr std::uint16_t kFail = 0x100;
/// A question: do you have this request? If not, answer kLacking, and it is sent again. No data. (Older servers drop
/// it.)
inline constexpr std::uint16_t kDoYouHave = 0x200;
inline constexpr std::uint16_t kLacking = 0x400;  ///< I do not have that request: send it again.
}  // namespace channel_flags

struct ChannelHeader {
  static constexpr std::size_t kSize = 24;

  std::uint16_t flags = 0;
  std::uint16_t channel = 0;
  ProtocolNumber protocol = 0;
  std::uint32_t sequence = 0;
  std::uint16_t error = 0;   ///< An Errc.
  BootId boot_id = 0;        ///< The sender's life.
  BootId peer_boot_id = 0;   ///< The life of the receiver that the sender addresses.
  std::uint16_t length = 0;  ///< Bytes of data; what follows them is padding.

  void encode(std::byte* to) const noexcept {
    WireWriter(to).put(flags, channel, protocol, sequence, error, boot_id, peer_boot_id, length);
  }
  [[nodiscard]] static ChannelHeader decode(const std::byte* from) noexcept {
    ChannelHeader header;
    WireReader(from).get(header.flags, header.channel, header.protocol, header.sequence, header.error, header.boot_id,
                         header.peer_boot_id, header.length);
    return header;
  }
};

}  // namespace lrpc::netrpc
