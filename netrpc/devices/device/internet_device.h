// What IP and UDP have in common: devices whose peers are hosts, or ports of hosts, of the Internet.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "netrpc/devices/device/device.h"
#include "netrpc/devices/device/interface.h"
#include "netrpc/devices/device/internet_address.h"

namespace lrpc::netrpc {

class InternetDevice : public Device {
 protected:
  /// `bound`: the address that it sends from and receives at; not known: any of this host's. `headers`: bytes of the
  /// kernel's headers in front of a message.
  InternetDevice(Host& host, std::string name, UringEngine& engine, std::size_t peers, HostAddress bound,
                 std::size_t headers)
      : Device(host, std::move(name), engine, peers), bound_(bound), headers_(headers) {}

  Participant participant_of(const DevicePeer& peer) noexcept override {
    return {.host = {static_cast<std::uint32_t>(peer.number >> 16)},
            .ethernet = {},
            .port = static_cast<std::uint16_t>(peer.number)};
  }
  std::size_t maximum() const noexcept override { return 65535 - headers_; }
  std::size_t optimum(HostAddress peer) const noexcept override {
    const std::size_t mtu = peer.known() ? path_mtu(peer) : kUsualMtu;
    return std::min((mtu > headers_ ? mtu : kUsualMtu) - headers_, maximum());
  }
  std::size_t kernel_headers() const noexcept override { return headers_; }
  bool cuts() const noexcept override { return true; }
  Participant local() const noexcept override {
    return {.host = bound_.known() ? bound_ : host().address(), .ethernet = {}};
  }

  /// Whether messages can be sent to `remote`. Errors: invalid_argument, host_unreachable, limit_reached.
  [[nodiscard]] Status check_remote(const Participant& remote) const {
    if (!remote.host.known()) return Error{Errc::invalid_argument, name() + ": the remote host is missing"};
    const Errc route = route_to(remote.host);
    if (route == Errc::ok) return {};
    const char* const why = route == Errc::host_unreachable
                                ? "there is no route to"
                                : "this host has no descriptor, port or memory to look for a route to";
    return Error{route, fmt::format("{}: {} {}", name(), why, to_string(remote.host))};
  }
  [[nodiscard]] static DevicePeer peer_at(HostAddress host, std::uint16_t port = 0) noexcept {
    DevicePeer peer;
    peer.number = std::uint64_t{host.value} << 16 | port;
    peer.set_address(socket_address(host, port));
    return peer;
  }

  const HostAddress bound_;

 private:
  const std::size_t headers_;
};

/// A device of the class `Kind` on the host's engine, bound to `options.address`. Errors: invalid_argument (the
/// address), not_supported (a simulated host).
template <class Kind, class KindOptions>
Result<std::unique_ptr<Protocol>> make_internet_device(std::string_view kind, Host& host, std::string name,
                                                       const KindOptions& options) {
  auto engine = device_engine(host, kind);
  if (!engine) return engine.error();
  auto bound = own_address(host, options.address);
  if (!bound) return Error{bound.error().code, name + ": " + bound.error().text};
  return std::make_unique<Kind>(host, std::move(name), *engine.value(), options, *bound);
}

}  // namespace lrpc::netrpc
