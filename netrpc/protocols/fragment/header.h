// FRAGMENT's header (the appendix of RPC in the x-Kernel).
#pragma once

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc::fragment {

inline constexpr std::uint8_t kData = 1;
/// Asks the sender of a message for the fragments in frag_mask. No data.
inline constexpr std::uint8_t kRequest = 2;
/// Data sent again on request. The type tells an answer, which measures the round trip, from data that was only late.
inline constexpr std::uint8_t kAgain = 3;

struct Header {
  static constexpr std::size_t kSize = 23;
  /// From type to protocol_num: the same in all kData packets that a session sends, and in all that it receives.
  static constexpr std::size_t kPrefix = 13;
  static constexpr unsigned kMaxFragments = 16;

  std::uint8_t type = kData;
  HostAddress clnt_host;  ///< Who has sent this packet.
  HostAddress svr_host;   ///< Who is to receive it.
  std::uint32_t protocol_num = 0;
  std::uint32_t sequence_num = 0;
  std::uint16_t num_frag = 1;
  std::uint16_t frag_mask = 1;  ///< Bit i: fragment i is in the packet, or asked for.
  std::uint16_t len = 0;        ///< Bytes of data that follow.

  void encode(std::byte* to) const noexcept {
    WireWriter(to).put(type, clnt_host, svr_host, protocol_num, sequence_num, num_frag, frag_mask, len);
  }
  [[nodiscard]] static Header decode(const std::byte* from) noexcept {
    Header header;
    WireReader(from).get(header.type, header.clnt_host, header.svr_host, header.protocol_num, header.sequence_num,
                         header.num_frag, header.frag_mask, header.len);
    return header;
  }
};

}  // namespace lrpc::netrpc::fragment
