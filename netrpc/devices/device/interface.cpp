#include "netrpc/devices/device/interface.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/route.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "netrpc/devices/device/internet_address.h"

namespace lrpc::netrpc {

namespace {

/// The interface of the default route; empty if there is none. Ignores routes to half of all addresses, with which some
/// VPNs override it, and reject routes.
std::string default_interface() {
  std::ifstream routes("/proc/thread-self/net/route");  // of this thread's network namespace
  std::string line;
  std::getline(routes, line);
  while (std::getline(routes, line)) {
    char name[IFNAMSIZ + 1] = {};
    unsigned long destination = 1;
    unsigned flags = 0;
    unsigned long mask = 1;
    if (std::sscanf(line.c_str(), "%16s %lx %*x %x %*d %*u %*u %lx", name, &destination, &flags, &mask) == 4 &&
        destination == 0 && mask == 0 && (flags & RTF_REJECT) == 0)
      return name;
  }
  return {};
}

Result<std::string> choose() {
  if (std::string name = default_interface(); !name.empty()) return name;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return system_error("getifaddrs", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, &::freeifaddrs);
  std::vector<std::string> names;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if ((at->ifa_flags & IFF_LOOPBACK) != 0 || (at->ifa_flags & IFF_UP) == 0) continue;
    if (std::find(names.begin(), names.end(), at->ifa_name) == names.end()) names.emplace_back(at->ifa_name);
  }
  if (names.size() == 1) return names.front();
  if (names.empty()) return Error{Errc::invalid_argument, "no network interface is up: set one up, or name one"};
  std::string list;
  for (const std::string& name : names) list += " " + name;
  return Error{Errc::invalid_argument, "which interface? Name one of:" + list};
}

/// A UDP socket to the discard port. Connecting it sends nothing: the kernel only looks for the route. Errors: those of
/// route_to().
Result<UniqueFd> discard_of(HostAddress host) noexcept {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return Errc::limit_reached;
  const sockaddr_in to = socket_address(host, 9);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return means_no_route(errno) ? Errc::host_unreachable : Errc::limit_reached;
  return socket;
}

/// 0: not known.
std::size_t mtu_of(const UniqueFd& socket) noexcept {
  int mtu = 0;
  socklen_t size = sizeof mtu;
  if (::getsockopt(socket.get(), IPPROTO_IP, IP_MTU, &mtu, &size) != 0 || mtu < 0) return 0;
  return static_cast<std::size_t>(mtu);
}

}  // namespace

Result<Interface> find_interface(const std::string& name) {
  auto chosen = name.empty() ? choose() : Result<std::string>(name);
  if (!chosen) return chosen.error();
  Interface found;
  found.name = *std::move(chosen);
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return system_error("socket", errno);
  ifreq request{};
  const bool fits = found.name.size() < sizeof request.ifr_name;
  if (fits) found.name.copy(request.ifr_name, found.name.size());
  if (!fits || ::ioctl(socket.get(), SIOCGIFINDEX, &request) != 0)
    return Error{Errc::invalid_argument, fmt::format("there is no interface {}", found.name)};
  found.index = request.ifr_ifindex;
  if (::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return system_error("SIOCGIFMTU", errno);
  found.mtu = static_cast<std::size_t>(request.ifr_mtu);
  if (::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0) return system_error("SIOCGIFHWADDR", errno);
  std::memcpy(found.ethernet.bytes.data(), request.ifr_hwaddr.sa_data, found.ethernet.bytes.size());
  if (::ioctl(socket.get(), SIOCGIFADDR, &request) == 0) {
    sockaddr_in address{};
    std::memcpy(&address, &request.ifr_addr, sizeof address);
    found.host = {ntohl(address.sin_addr.s_addr)};
  }
  return found;
}

Result<Interface> find_interface_of(HostAddress host) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return system_error("getifaddrs", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, &::freeifaddrs);
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & (IFF_LOOPBACK | IFF_NOARP)) != 0) continue;
    sockaddr_in address{};
    std::memcpy(&address, at->ifa_addr, sizeof address);
    if (ntohl(address.sin_addr.s_addr) != host.value) continue;
    const std::string label = at->ifa_name;  // "eth0:1" is eth0
    return find_interface(label.substr(0, label.find(':')));
  }
  return Error{Errc::name_unknown, "no interface has the address " + to_string(host)};
}

sockaddr_ll link_address(int index, std::uint16_t type, const EthernetAddress& to) noexcept {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(type);
  address.sll_ifindex = index;
  address.sll_halen = static_cast<unsigned char>(to.bytes.size());
  std::memcpy(address.sll_addr, to.bytes.data(), to.bytes.size());
  return address;
}

bool means_no_route(int error) noexcept {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES || error == EINVAL;
}

Errc route_to(HostAddress host) noexcept { return discard_of(host).code(); }

std::size_t path_mtu(HostAddress host) noexcept {
  const Result<UniqueFd> socket = discard_of(host);
  return socket ? mtu_of(*socket) : 0;
}

UniqueFd ask_path_mtu(HostAddress host) noexcept {
  static constexpr std::array<std::byte, 9000> kNothing{};
  constexpr std::size_t kHeaders = 20 + 8;
  Result<UniqueFd> found = discard_of(host);
  if (!found) return {};
  UniqueFd socket = *std::move(found);
  const std::size_t mtu = std::min(mtu_of(socket), kNothing.size());
  const int uncut = IP_PMTUDISC_DO;
  if (mtu <= kHeaders || ::setsockopt(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, &uncut, sizeof uncut) != 0) return {};
  (void)::send(socket.get(), kNothing.data(), mtu - kHeaders, MSG_DONTWAIT | MSG_NOSIGNAL);
  return socket;
}

void wait_for_answer(const UniqueFd& question, std::chrono::milliseconds limit) noexcept {
  pollfd answered{question.get(), 0, 0};  // each answer is an ICMP error, reported as POLLERR
  (void)::poll(&answered, 1, static_cast<int>(limit.count()));
}

}  // namespace lrpc::netrpc
