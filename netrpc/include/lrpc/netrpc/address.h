// Addresses of hosts and protocols, as the network path names them (RPC in the x-Kernel §3.1).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lrpc::netrpc {

/// A host: its 32-bit IP address, in host byte order (the paper's 32-bit IP host address). Zero: not known.
struct HostAddress {
  std::uint32_t value = 0;
  [[nodiscard]] constexpr bool known() const noexcept { return value != 0; }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 stumbles over a defaulted operator<=>
  friend constexpr auto operator<=>(HostAddress, HostAddress) = default;
};

/// An Ethernet address. All zero: not known.
struct EthernetAddress {
  std::array<std::uint8_t, 6> bytes{};
  [[nodiscard]] constexpr bool known() const noexcept { return bytes != std::array<std::uint8_t, 6>{}; }
  /// The 48 bits as one number, the first byte the highest.
  [[nodiscard]] constexpr std::uint64_t number() const noexcept {
    std::uint64_t number = 0;
    for (const std::uint8_t byte : bytes) number = number << 8 | byte;
    return number;
  }
  friend constexpr auto operator<=>(const EthernetAddress&, const EthernetAddress&) = default;
};
inline constexpr EthernetAddress kEthernetBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

/// The number by which a high-level protocol identifies itself to the protocol below: the paper's protocol number, one
/// space for the whole graph. VIP and the protocols below it use the 256 numbers of IP's 8-bit field.
using ProtocolNumber = std::uint32_t;

/// The numbers of our own protocols, chosen from those that IANA has not assigned to an IP protocol (148 to 252). They
/// are part of the wire: append, never renumber.
namespace protocol_numbers {
inline constexpr ProtocolNumber kFragment = 201;
inline constexpr ProtocolNumber kChannel = 202;
inline constexpr ProtocolNumber kSelect = 203;
inline constexpr ProtocolNumber kMonolithic = 204;  ///< M_RPC.
inline constexpr ProtocolNumber kReliableDatagram = 205;
inline constexpr ProtocolNumber kForwardingSelect = 206;
inline constexpr ProtocolNumber kAuth = 207;
inline constexpr ProtocolNumber kVipHosts = 208;     ///< The advertisements of hosts that speak VIP.
inline constexpr ProtocolNumber kNetworkPath = 209;  ///< lrpc-netd's commands, over SELECT.
inline constexpr ProtocolNumber kPaired = 210;
inline constexpr ProtocolNumber kRequestReply = 211;  ///< Sun RPC's. Over UDP(local_ports = N) its port is N + 211.
inline constexpr ProtocolNumber kSunCall = 212;       ///< Sun RPC's calls over CHANNEL.
inline constexpr ProtocolNumber kPsync = 213;
inline constexpr ProtocolNumber kFirstOfTests = 240;  ///< 240 to 252: tests, benches and programs of users.
}  // namespace protocol_numbers

/// "10.0.0.1"; the address 0.0.0.0 is "?".
[[nodiscard]] std::string to_string(HostAddress host);
/// "02:00:00:00:00:01".
[[nodiscard]] std::string to_string(const EthernetAddress& address);
/// Parses a dotted quad; nullopt if `text` is none.
[[nodiscard]] std::optional<HostAddress> parse_host(std::string_view text);
/// Why parse_host() refuses `text`, for errors; for example, it is an IPv6 address.
[[nodiscard]] std::string why_no_host(std::string_view text);

}  // namespace lrpc::netrpc

template <>
struct std::hash<lrpc::netrpc::HostAddress> {
  std::size_t operator()(lrpc::netrpc::HostAddress host) const noexcept {
    return host.value * 0x9e3779b97f4a7c15ULL >> 16;
  }
};
