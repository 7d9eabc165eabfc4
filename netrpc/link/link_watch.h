// Hears from the kernel what becomes of a device's link.
#pragma once

#include <memory>

#include "netrpc/arp/rtnetlink_requests.h"
#include "netrpc/engine/uring_engine.h"
#include "netrpc/link/link_state.h"

namespace lrpc::netrpc {

/// Who has to know.
class LinkUser {
 public:
  /// The link is as LinkWatch::link() says now. Inside the monitor.
  virtual void link_changed(const LinkChange& change) noexcept = 0;

 protected:
  ~LinkUser() = default;
};

/// The kernel's news of links and IPv4 addresses (rtnetlink(7), RTMGRP_LINK and RTMGRP_IPV4_IFADDR) for one link, and
/// questions about it where news has been lost. Needs no privilege, and nothing later that a sandbox would refuse. All
/// use is inside the monitor.
class LinkWatch final : private SocketReader {
 public:
  /// `user` outlives it, and is told nothing before the first message of the engine. Errors: system_error.
  static Result<std::unique_ptr<LinkWatch>> make(Host& host, UringEngine& engine, Interface link);
  LinkWatch(const LinkWatch&) = delete;
  LinkWatch& operator=(const LinkWatch&) = delete;
  ~LinkWatch();

  /// From now on `user`, which outlives this, is told.
  void tell(LinkUser& user) noexcept { user_ = &user; }
  void tell_nobody() noexcept { user_ = nullptr; }
  [[nodiscard]] const Interface& link() const noexcept { return state_.link(); }
  /// Whether the host's own address belongs to this machine, as far as is known.
  [[nodiscard]] bool has_own_address() const noexcept { return state_.has_own(); }
  /// Asks the kernel, as something has gone wrong that a change may have caused; at most once in kPause.
  void look() noexcept;
  /// Whether a link of this machine has this Ethernet address now, or may have: asks the kernel for all links.
  [[nodiscard]] bool is_of_this_machine(const EthernetAddress& ethernet) noexcept;

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  /// News that came before some was lost may lie in the socket so long.
  static constexpr Duration kOldNews = std::chrono::seconds(1);

  LinkWatch(Host& host, UringEngine& engine, Interface link)
      : host_(host), engine_(engine), state_(std::move(link), host.address()), again_([this] { ask(); }) {}
  void arrived(Message message, std::span<const std::byte> from) noexcept override;
  void send_failed(int /*error*/) noexcept override {}
  void receive_failed(int /*error*/) noexcept override;

  void ask() noexcept;
  void ask_for_address() noexcept;
  void heard(const rtnetlink::Link& news) noexcept;
  void changed(const LinkChange& change, const std::string& name_before) noexcept;

  Host& host_;
  UringEngine& engine_;
  LinkState state_;
  LinkUser* user_ = nullptr;
  rtnetlink::Requests requests_;
  bool watching_ = false;
  SocketId news_;
  Time may_look_{};
  Time believes_from_{};
  Event again_;
};

}  // namespace lrpc::netrpc
