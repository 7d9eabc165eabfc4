// PAIRED's header (White, An RPC Protocol in the Berkeley UNIX Kernel, §2.2, Figure 2).
#pragma once

#include <optional>

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc::paired {

/// The bits of `control`, from the least significant on. A segment is data unless it has kAck, kProbe or kLost.
namespace bits {
inline constexpr std::uint16_t kPleaseAck = 0x01;    ///< An explicit acknowledgement is asked for.
inline constexpr std::uint16_t kAck = 0x02;          ///< An explicit acknowledgement. No data.
inline constexpr std::uint16_t kLastSegment = 0x04;  ///< The last segment of a message, or its only one.
inline constexpr std::uint16_t kProbe = 0x08;        ///< Are you there? With kAck: I am. No data.
/// Ours: the sender is the server of the channel. The paper's receiver knows that by its socket's type (§3.2).
inline constexpr std::uint16_t kFromServer = 0x10;
/// Ours, with kFromServer: there will be no reply to this call. No data.
inline constexpr std::uint16_t kLost = 0x20;
}  // namespace bits

/// A segment has at most kSegment bytes of data (§3.3). Ours: one that is not the last has at least kLeastSegment,
/// because smaller ones would make a receiver keep many buffers of few bytes.
inline constexpr std::size_t kSegment = 1024;
inline constexpr std::size_t kLeastSegment = 256;

/// The paper gives the first three fields and no widths. The others are ours.
struct Header {
  static constexpr std::size_t kSize = 24;

  std::uint16_t control = 0;
  std::uint16_t segment = 0;  ///< From 1. Of probes: ignored.
  std::uint32_t call_number =
      0;  ///< One number for a request and its reply, higher for each. Compared as serial numbers.
  /// Upper half: the boot identifier of the server's life that the client means. Lower half: the number of their
  /// meeting in that life. (A server of the paper that has crashed would execute a repeated request again.)
  std::uint64_t conversation = 0;
  ProtocolNumber protocol = 0;  ///< With `channel`: names a channel of the two hosts. The paper has a port for each.
  std::uint16_t channel = 0;
  std::uint16_t length = 0;  ///< Bytes of data; what follows them is padding.

  [[nodiscard]] bool has(std::uint16_t bit) const noexcept { return (control & bit) != 0; }
  [[nodiscard]] bool data() const noexcept { return !has(bits::kAck | bits::kProbe | bits::kLost); }

  void encode(std::byte* to) const noexcept {
    WireWriter(to).put(control, segment, call_number, conversation, protocol, channel, length);
  }
  /// `behind`: bytes that follow the header. Null: the peer must not send such a segment.
  [[nodiscard]] static std::optional<Header> decode(const std::byte* from, std::size_t behind) noexcept {
    Header header;
    WireReader(from).get(header.control, header.segment, header.call_number, header.conversation, header.protocol,
                         header.channel, header.length);
    switch (header.control & ~bits::kFromServer) {
      case bits::kProbe:
      case bits::kProbe | bits::kAck: return header.length == 0 ? std::optional(header) : std::nullopt;
      case bits::kLost:
        return header.has(bits::kFromServer) && header.length == 0 ? std::optional(header) : std::nullopt;
      case bits::kAck: return header.length == 0 && header.segment != 0 ? std::optional(header) : std::nullopt;
      case bits::kPleaseAck:
        if (header.length < kLeastSegment) return std::nullopt;
        break;
      case bits::kLastSegment:
      case bits::kLastSegment | bits::kPleaseAck: break;
      default: return std::nullopt;
    }
    if (header.segment == 0 || header.length > kSegment || header.length > behind) return std::nullopt;
    return header;
  }
};

}  // namespace lrpc::netrpc::paired
