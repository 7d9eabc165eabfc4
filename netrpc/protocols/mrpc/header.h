// The header: the paper's sprite_hdr in network byte order without padding, and the life of the receiver that is
// addressed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc::mrpc {

/// What a packet is. Part of the wire: append, never renumber.
enum class Type : std::uint8_t {
  request = 1,      ///< Client to server: a fragment of a request; or a probe, with no fragment in it.
  reply = 2,        ///< Server to client: a fragment of a reply.
  request_ack = 3,  ///< Server to client: I have the fragments in frag_mask; if that is all, I execute the request.
  reply_ack = 4,    ///< Client to server: frag_mask has been received of the reply.
  query = 5,        ///< Client to server: which life are you in? sequence_num is to be sent back.
  life = 6,         ///< The answer to that.
  rebooted = 7,     ///< Server to client: what you sent is for a life of mine that is over; nothing was done.
};

/// Beside the type in `flags`.
inline constexpr std::uint16_t kPleaseAck = 0x0100;  ///< Sent again, or a probe: answer even if it is a duplicate.
inline constexpr std::uint16_t kError = 0x0200;      ///< A reply without data; `command` is the Errc instead.

inline constexpr std::size_t kMaxChannels = 64;  ///< From one host to another.

struct Header {
  Type type = Type::request;
  std::uint16_t bits = 0;
  HostAddress client;
  HostAddress server;
  std::uint16_t channel = 0;
  std::uint32_t sequence = 0;
  std::uint16_t fragments = 1;  ///< num_frag.
  std::uint16_t mask = 1;       ///< frag_mask: the one fragment that is here, or those that have been received.
  std::uint16_t command = 0;
  std::uint32_t boot_id = 0;       ///< The sender's.
  std::uint16_t size = 0;          ///< data1_sz: bytes behind the header; what follows them is padding.
  std::uint16_t offset = 0;        ///< data1_offset: where they lie in the whole.
  std::uint32_t peer_boot_id = 0;  ///< The receiver's, as the sender knows it.

  static constexpr std::size_t kSize = 40;
  /// svr_process (the hint of a server process) and data2 are the paper's, and zero.
  void encode(std::byte* to) const noexcept {
    const auto flags = static_cast<std::uint16_t>(static_cast<std::uint16_t>(type) | bits);
    constexpr std::uint16_t kZero = 0;
    WireWriter(to).put(flags, client, server, channel, kZero, sequence, fragments, mask, command, boot_id, size, kZero,
                       offset, kZero, peer_boot_id);
  }
  /// Reads kSize bytes. Checks nothing.
  [[nodiscard]] static Header decode(const std::byte* from) noexcept {
    Header header;
    std::uint16_t flags = 0;
    std::uint16_t ignored = 0;
    WireReader(from).get(flags, header.client, header.server, header.channel, ignored, header.sequence,
                         header.fragments, header.mask, header.command, header.boot_id, header.size, ignored,
                         header.offset, ignored, header.peer_boot_id);
    header.type = static_cast<Type>(flags & 0xff);
    header.bits = flags & 0xff00;
    return header;
  }
};

}  // namespace lrpc::netrpc::mrpc
