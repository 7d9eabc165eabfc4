// Decodes what the kernel says over rtnetlink. Every length is checked.
#pragma once

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/clock.h"

namespace lrpc::netrpc::rtnetlink {

/// After news was lost, the news still queued in the socket is older than the lost news. It may stay there this long.
inline constexpr Duration kOldNews = std::chrono::seconds(1);

/// Takes a T off the front of `bytes`. False: too short.
template <class T>
[[nodiscard]] bool take(std::span<const std::byte>& bytes, T& value) noexcept {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(sizeof value), bytes.size()));
  return true;
}

/// Calls visit(type, bytes) for each attribute.
template <class Visit>
void attributes(std::span<const std::byte> bytes, Visit visit) noexcept {
  for (rtattr attribute{}; bytes.size() >= sizeof attribute;) {
    std::memcpy(&attribute, bytes.data(), sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > bytes.size()) return;
    visit(attribute.rta_type, bytes.subspan(sizeof attribute, attribute.rta_len - sizeof attribute));
    bytes = bytes.subspan(std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), bytes.size()));
  }
}

/// Calls visit(header, payload) for each netlink message.
template <class Visit>
void messages(std::span<const std::byte> bytes, Visit visit) noexcept {
  for (nlmsghdr header{}; bytes.size() >= sizeof header;) {
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > bytes.size()) return;
    visit(header, bytes.subspan(sizeof header, header.nlmsg_len - sizeof header));
    bytes = bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), bytes.size()));
  }
}

/// An IPv4 neighbour in an RTM_NEWNEIGH or RTM_DELNEIGH.
struct Neighbour {
  bool removed = false;      ///< RTM_DELNEIGH.
  int interface = 0;         ///< Its index.
  std::uint16_t state = 0;   ///< NUD_ bits.
  HostAddress host;          ///< Not known: not in the message.
  EthernetAddress ethernet;  ///< Not known: not in the message.

  /// Whether the kernel would send there now.
  [[nodiscard]] bool usable() const noexcept {
    constexpr std::uint16_t kUsable = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT;
    return !removed && (state & kUsable) != 0 && ethernet.known();
  }
};
/// Decodes a message's payload. Nullopt: another kind of message.
[[nodiscard]] inline std::optional<Neighbour> decode_neighbour(std::uint16_t type,
                                                               std::span<const std::byte> payload) noexcept {
  ndmsg header{};
  if ((type != RTM_NEWNEIGH && type != RTM_DELNEIGH) || !take(payload, header)) return std::nullopt;
  if (header.ndm_family != AF_INET) return std::nullopt;
  Neighbour neighbour{.removed = type == RTM_DELNEIGH,
                      .interface = header.ndm_ifindex,
                      .state = header.ndm_state,
                      .host = {},
                      .ethernet = {}};
  attributes(payload, [&](std::uint16_t kind, std::span<const std::byte> value) {
    std::uint32_t address = 0;
    if (kind == NDA_DST && take(value, address)) neighbour.host = {ntohl(address)};
    if (kind == NDA_LLADDR) (void)take(value, neighbour.ethernet);
  });
  return neighbour;
}

/// A link in an RTM_NEWLINK or RTM_DELLINK.
struct Link {
  bool removed = false;  ///< RTM_DELLINK.
  int index = 0;
  unsigned flags = 0;           ///< IFF_ bits.
  std::array<char, 16> name{};  ///< Ends with a zero; empty: not in the message.
  std::uint32_t mtu = 0;        ///< 0: not in the message.
  EthernetAddress ethernet;     ///< Not known: not in the message, or not an Ethernet's.
  [[nodiscard]] std::string_view name_view() const noexcept { return name.data(); }
};
/// Decodes a message's payload. Nullopt: another kind of message. A bridge reports its ports by the same messages, in a
/// family of its own. They are ignored: a port that leaves its bridge still exists.
[[nodiscard]] inline std::optional<Link> decode_link(std::uint16_t type, std::span<const std::byte> payload) noexcept {
  ifinfomsg header{};
  if ((type != RTM_NEWLINK && type != RTM_DELLINK) || !take(payload, header)) return std::nullopt;
  if (header.ifi_family != AF_UNSPEC || header.ifi_index <= 0) return std::nullopt;
  Link link{.removed = type == RTM_DELLINK, .index = header.ifi_index, .flags = header.ifi_flags, .ethernet = {}};
  attributes(payload, [&](std::uint16_t kind, std::span<const std::byte> value) {
    if (kind == IFLA_IFNAME && !value.empty() && value.size() <= link.name.size() && value.back() == std::byte{0})
      std::memcpy(link.name.data(), value.data(), value.size());
    if (kind == IFLA_MTU) (void)take(value, link.mtu);
    if (kind == IFLA_ADDRESS && value.size() == link.ethernet.bytes.size()) (void)take(value, link.ethernet);
  });
  return link;
}

/// An IPv4 address of a link, in an RTM_NEWADDR or RTM_DELADDR.
struct LinkAddress {
  bool removed = false;  ///< RTM_DELADDR.
  int interface = 0;     ///< Its index.
  HostAddress host;      ///< Not known: not in the message.
};
/// Decodes a message's payload. Nullopt: another kind of message.
[[nodiscard]] inline std::optional<LinkAddress> decode_address(std::uint16_t type,
                                                               std::span<const std::byte> payload) noexcept {
  ifaddrmsg header{};
  if ((type != RTM_NEWADDR && type != RTM_DELADDR) || !take(payload, header)) return std::nullopt;
  if (header.ifa_family != AF_INET) return std::nullopt;
  LinkAddress address{.removed = type == RTM_DELADDR, .interface = static_cast<int>(header.ifa_index), .host = {}};
  attributes(payload, [&](std::uint16_t kind, std::span<const std::byte> value) {
    std::uint32_t local = 0;
    if (kind == IFA_LOCAL && take(value, local)) address.host = {ntohl(local)};
  });
  return address;
}

/// The destination of an IPv4 route that was added, changed or removed (RTM_NEWROUTE, RTM_DELROUTE).
struct RouteNews {
  HostAddress to;           ///< The network's address; not known: it is that of the default route.
  std::uint8_t length = 0;  ///< Bits of the network's address, at most 32.
  [[nodiscard]] bool leads_to(HostAddress host) const noexcept {
    return length == 0 || (host.value ^ to.value) >> (32 - length) == 0;
  }
};
/// Decodes a message's payload. Nullopt: another kind of message.
[[nodiscard]] inline std::optional<RouteNews> decode_route(std::uint16_t type,
                                                           std::span<const std::byte> payload) noexcept {
  rtmsg header{};
  if ((type != RTM_NEWROUTE && type != RTM_DELROUTE) || !take(payload, header)) return std::nullopt;
  if (header.rtm_family != AF_INET || header.rtm_dst_len > 32) return std::nullopt;
  RouteNews route{.to = {}, .length = header.rtm_dst_len};
  attributes(payload, [&](std::uint16_t kind, std::span<const std::byte> value) {
    std::uint32_t to = 0;
    if (kind == RTA_DST && take(value, to)) route.to = {ntohl(to)};
  });
  return route;
}

/// Whether the route in an RTM_NEWROUTE leads through `interface` to its host without a gateway.
[[nodiscard]] inline bool direct_route(std::uint16_t type, std::span<const std::byte> payload, int interface) noexcept {
  rtmsg route{};
  if (type != RTM_NEWROUTE || !take(payload, route)) return false;
  bool direct = route.rtm_type == RTN_UNICAST;
  attributes(payload, [&](std::uint16_t kind, std::span<const std::byte> value) {
    if (kind == RTA_GATEWAY || kind == RTA_VIA) direct = false;
    int index = 0;
    if (kind == RTA_OIF && take(value, index) && index != interface) direct = false;
  });
  return direct;
}

}  // namespace lrpc::netrpc::rtnetlink
