// What the kernel says over rtnetlink, taken apart: every length is checked against what there is.
#pragma once

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "lrpc/netrpc/address.h"

namespace lrpc::netrpc::rtnetlink {

/// A T at the front of `bytes`, and what lies behind it; false: too short.
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

/// An IPv4 neighbour, as RTM_NEWNEIGH and RTM_DELNEIGH tell of one.
struct Neighbour {
  bool removed = false;      ///< RTM_DELNEIGH.
  int interface = 0;         ///< Its index.
  std::uint16_t state = 0;   ///< NUD_ bits.
  HostAddress host;          ///< Not known: not said.
  EthernetAddress ethernet;  ///< Not known: not said.

  /// Whether the kernel would send there now.
  [[nodiscard]] bool usable() const noexcept {
    constexpr std::uint16_t kUsable = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT;
    return !removed && (state & kUsable) != 0 && ethernet.known();
  }
};
/// Of a message's payload. Nothing: it tells of something else.
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

/// Whether a route, as RTM_NEWROUTE tells of one, leads through `interface` to its host without a gateway.
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
