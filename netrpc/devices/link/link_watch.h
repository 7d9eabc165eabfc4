// Follows a device's link by the kernel's news.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "netrpc/devices/arp/asker.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/devices/link/link_state.h"

namespace lrpc::netrpc {

/// Is told of changes of the link.
class LinkUser {
 public:
  /// LinkWatch::link() returns the new state already. Inside the monitor.
  virtual void link_changed(const LinkChange& change) noexcept = 0;

 protected:
  ~LinkUser() = default;
};

/// The kernel's news of links and IPv4 addresses (rtnetlink(7), RTMGRP_LINK and RTMGRP_IPV4_IFADDR) for one link; it
/// asks the kernel when news has been lost. Needs no privilege, and after make() nothing that a sandbox would refuse.
/// All use is inside the monitor; only make() blocks there.
class LinkWatch final : private SocketReader {
 public:
  /// `asker` outlives this object, but must run no answers after this one's destruction. Errors: system_error.
  static Result<std::unique_ptr<LinkWatch>> make(Host& host, UringEngine& engine, Asker& asker, Interface link);
  ~LinkWatch() { engine_.remove(news_); }

  /// From now on notifies `user`, which outlives this.
  void tell(LinkUser& user) noexcept { user_ = &user; }
  void tell_nobody() noexcept { user_ = nullptr; }
  [[nodiscard]] const Interface& link() const noexcept { return state_.link(); }
  /// Whether the host's own address belongs to this machine, as far as is known.
  [[nodiscard]] bool has_own_address() const noexcept { return state_.has_own(); }
  /// Asks the kernel about the link, after an error that a change may have caused; at most once in kPause.
  void look() noexcept;
  /// Asks the kernel whether a link of this machine has this Ethernet address; `ours` is true also if the kernel gives
  /// no full answer. `answer` is not called if too many questions wait.
  void ask_whether_ours(const EthernetAddress& ethernet, std::function<void(bool ours)> answer);

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestQuestion = std::chrono::seconds(1);

  /// What the kernel says when it is asked.
  struct Found {
    int removed = 0;                      ///< The link's index, if no link has it any more; else 0.
    std::optional<rtnetlink::Link> link;  ///< As it is now.
    std::optional<bool> own_is_there;     ///< Whether a link has the host's own address.
  };

  LinkWatch(Host& host, UringEngine& engine, Asker& asker, Interface link)
      : host_(host), engine_(engine), asker_(asker), state_(std::move(link), host.address()), again_([this] {
          ask();
        }) {}
  void arrived(Message message, std::span<const std::byte> from) noexcept override;
  void receive_failed(int /*error*/) noexcept override;

  void ask() noexcept;
  [[nodiscard]] static Found find(rtnetlink::Requests& kernel, const Interface& link, HostAddress own);
  [[nodiscard]] static std::optional<bool> find_address(rtnetlink::Requests& kernel, HostAddress own);
  void found(const Found& found) noexcept;
  void heard(const rtnetlink::Link& news) noexcept {
    const std::string before = link().name;
    changed(state_.heard(news), before);
  }
  void changed(const LinkChange& change, const std::string& name_before) noexcept;

  Host& host_;
  UringEngine& engine_;
  Asker& asker_;
  LinkState state_;
  LinkUser* user_ = nullptr;
  bool asking_ = false;
  bool ask_again_ = false;  ///< ask() was called while a question was under way.
  Time asking_until_{};
  SocketId news_;
  std::uint64_t news_heard_ = 0;
  Time may_look_{};
  Time believes_from_{};
  Event again_;
};

}  // namespace lrpc::netrpc
