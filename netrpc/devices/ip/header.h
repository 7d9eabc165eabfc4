// The IP header in front of what a raw socket receives.
#pragma once

#include <optional>

#include "lrpc/netrpc/message.h"
#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc {

inline constexpr std::size_t kIpHeader = 20;  ///< Without IP options.

/// Removes the header and options from the front of a datagram, and from its end all bytes beyond its length. Returns
/// the source address. The kernel has checked the header, but a wrong length would do harm here. Nullopt: do not
/// deliver.
[[nodiscard]] inline std::optional<HostAddress> pop_ip_header(Message& message) noexcept {
  Message::Header<kIpHeader> header;
  message.pop(header);
  if (!header) return std::nullopt;
  WireReader reader(header.bytes);
  const auto version_and_length = reader.get<std::uint8_t>();
  (void)reader.get<std::uint8_t>();  // type of service
  const std::size_t total = reader.get<std::uint16_t>();
  (void)reader.get<std::uint64_t>();  // identification, fragment offset, time to live, protocol, checksum
  const HostAddress source = reader.get_host();
  const std::size_t header_size = std::size_t{version_and_length & 0xfU} * 4;
  if (version_and_length >> 4 != 4 || header_size < kIpHeader) return std::nullopt;
  const std::size_t options = header_size - kIpHeader;
  if (total < header_size || total - kIpHeader > message.size()) return std::nullopt;
  std::byte scratch[60];
  if (options != 0 && message.pop(options, scratch) == nullptr) return std::nullopt;
  message.truncate(total - header_size);
  // 0.0.0.0, multicast and broadcast addresses are no host's.
  if (!source.known() || source.value >> 28 >= 0xe) return std::nullopt;
  return source;
}

}  // namespace lrpc::netrpc
