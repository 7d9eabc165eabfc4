// Learns from the kernel's news which hosts may be reached another way from now on.
#pragma once

#include <functional>
#include <memory>

#include "netrpc/devices/arp/rtnetlink.h"
#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc {

/// The kernel's news of IPv4 routes, and of the links and addresses that routes need (rtnetlink(7)). It has its own
/// socket, so that a burst of routes cannot cause the loss of other news. Needs no privilege. All use is inside the
/// monitor.
class RouteWatch final : private SocketReader {
 public:
  /// Errors: system_error.
  static Result<std::unique_ptr<RouteWatch>> make(Host& host, UringEngine& engine);
  ~RouteWatch() { engine_.remove(news_); }

  /// Called with each route that was added, changed or removed; with the default route if any may have changed. Must
  /// not throw.
  std::function<void(const rtnetlink::RouteNews&)> changed;

 private:
  /// The kernel sends the news of a link or an address before it removes the routes that need it, at most this long.
  static constexpr Duration kRemoval = std::chrono::seconds(1);

  RouteWatch(Host& host, UringEngine& engine) : host_(host), engine_(engine), again_([this] { tell({}); }) {}
  void arrived(Message message, std::span<const std::byte> from) noexcept override;
  void receive_failed(int /*error*/) noexcept override { any_changed(); }
  /// Reports that any route may have changed: now, and again when the kernel has removed routes.
  void any_changed() noexcept;
  void tell(const rtnetlink::RouteNews& route) const {
    if (changed) changed(route);
  }

  Host& host_;
  UringEngine& engine_;
  SocketId news_;
  Event again_;
};

}  // namespace lrpc::netrpc
