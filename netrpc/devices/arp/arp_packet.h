// ARP's packets for IPv4 over Ethernet (RFC 826), after the Ethernet header.
#pragma once

#include <optional>
#include <span>

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc::arp {

inline constexpr std::size_t kPacket = 28;

struct Packet {
  bool reply = false;  ///< Else a request.
  EthernetAddress sender;
  HostAddress sender_host;  ///< Not known: an ARP probe (RFC 5227), which claims nothing.
  EthernetAddress target;   ///< Not known in requests.
  HostAddress target_host;
};

/// Nullopt: too short, or not IPv4 over Ethernet. A frame's padding may follow.
[[nodiscard]] inline std::optional<Packet> decode(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kPacket) return std::nullopt;
  WireReader reader(bytes.data());
  const auto hardware = reader.get<std::uint16_t>();
  const auto protocol = reader.get<std::uint16_t>();
  const auto sizes = reader.get<std::uint16_t>();
  const auto operation = reader.get<std::uint16_t>();
  if (hardware != 1 || protocol != 0x0800 || sizes != 0x0604 || operation < 1 || operation > 2) return std::nullopt;
  Packet packet;
  packet.reply = operation == 2;
  reader.get(packet.sender.bytes, packet.sender_host, packet.target.bytes, packet.target_host);
  return packet;
}

/// `to`: kPacket bytes.
inline void encode(const Packet& packet, std::byte* to) noexcept {
  WireWriter(to)
      .put(std::uint16_t{1}, std::uint16_t{0x0800}, std::uint16_t{0x0604},
           static_cast<std::uint16_t>(packet.reply ? 2 : 1))
      .put(packet.sender.bytes, packet.sender_host, packet.target.bytes, packet.target_host);
}

}  // namespace lrpc::netrpc::arp
