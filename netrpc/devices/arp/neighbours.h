// ARP: the kernel's own, queried over rtnetlink. Is a host on this link, and what is its Ethernet address there?
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "lrpc/netrpc/map.h"
#include "netrpc/devices/arp/asker.h"
#include "netrpc/devices/arp/route_watch.h"
#include "netrpc/devices/device/interface.h"
#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc {

/// The key of a map, like HostKey. The seed is Host::hash_seed(), because machines on the link may choose their
/// addresses.
struct EthernetKey {
  std::uint64_t seed = 0;
  EthernetAddress ethernet;
  [[nodiscard]] std::uint64_t hash() const noexcept { return mix(seed, ethernet.number()); }
  friend bool operator==(const EthernetKey&, const EthernetKey&) = default;
};

/// The neighbours on one interface. What the kernel says about them, and about the routes to them, is kept until the
/// kernel says that it has changed. All use is inside the monitor; only make() blocks there.
class Neighbours final : private SocketReader {
 public:
  /// `asker` outlives this object, but must run no answers after this one's destruction. Asks the kernel for all its
  /// neighbours. Errors: system_error.
  static Result<std::unique_ptr<Neighbours>> make(Host& host, UringEngine& engine, Asker& asker, int interface);
  ~Neighbours() { engine_.remove(news_); }

  /// Errors: host_unreachable (behind a gateway, on another interface, this host itself, or not known yet). For an
  /// unknown host it asks the kernel, and then makes the kernel send an ARP request (by an empty UDP datagram to the
  /// discard port: that needs no privilege), at most once in kRetry for one host. When the answer comes,
  /// Peers::path_changes() changes, and `resolved` is called.
  [[nodiscard]] Errc resolve(HostAddress host, EthernetAddress& ethernet) noexcept;
  /// Whether the host may still answer: it has been asked for, and is not known to be absent.
  [[nodiscard]] bool may_answer(HostAddress host) noexcept;
  /// Errors: host_unreachable (not known; then it asks the kernel for all its neighbours).
  [[nodiscard]] Errc resolve_reverse(EthernetAddress ethernet, HostAddress& host) noexcept;
  /// Whether the kernel's routes are known to lead to the host another way (a gateway, another interface).
  [[nodiscard]] bool routed_away(HostAddress host) noexcept;
  /// Whether the host is known, and the kernel has said that its routes lead to it here. Until then call resolve() for
  /// each message: the kernel's answer may have been lost, and resolve() asks again.
  [[nodiscard]] bool routed_here(HostAddress host) noexcept;
  /// The interface has another index from now on: forgets all neighbours. 0: there is no interface, and so no
  /// neighbour.
  void use_interface(int index) noexcept;
  /// Changes when an address that was resolved before may have become wrong.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

  /// Called with each host that becomes known or gets another address.
  std::function<void(HostAddress)> resolved;

 private:
  static constexpr Duration kRetry = std::chrono::seconds(1);
  static constexpr Duration kDumpPause = std::chrono::milliseconds(10);
  /// Hosts remembered; the kernel's table is of this order.
  static constexpr std::size_t kRemembered = 4096;

  /// What the kernel says about a host.
  struct Found {
    bool on_link = false;
    EthernetAddress ethernet;  ///< Not known: the kernel does not know it either.
  };
  /// What the kernel says about all hosts.
  using Table = std::vector<rtnetlink::Neighbour>;
  /// The last question about a host. Set to {} when news has made the answer outdated: then the next message asks
  /// again.
  struct Question {
    Time again{};              ///< When it may be asked again.
    std::uint64_t number = 0;  ///< 0: no answer is valid.
  };
  /// A host whose Ethernet address is known. The address is used before the routes are known, since most lead here.
  struct Known {
    EthernetAddress ethernet;
    bool routed_here = false;  ///< The kernel has said so.
    Question question;
  };
  /// A host that was asked for and is not known.
  struct Silent {
    Question question;
    bool absent = false;  ///< It is not on the link, or has not answered there.
    bool away = false;    ///< The kernel's routes lead to it another way.
  };

  Neighbours(Host& host, UringEngine& engine, Asker& asker, int interface)
      : host_(host), engine_(engine), asker_(asker), interface_(interface) {}
  void arrived(Message message, std::span<const std::byte> from) noexcept override;
  void receive_failed(int error) noexcept override;
  [[nodiscard]] HostKey key(HostAddress host) const noexcept { return {host_.hash_seed(), host}; }
  [[nodiscard]] EthernetKey key(const EthernetAddress& ethernet) const noexcept {
    return {host_.hash_seed(), ethernet};
  }

  /// Nullopt: the kernel has not answered.
  [[nodiscard]] static std::optional<Found> find(rtnetlink::Requests& kernel, HostAddress host, int interface) noexcept;
  [[nodiscard]] static Table all(rtnetlink::Requests& kernel);
  /// At most once in kRetry: an answer may never come.
  void ask_for(HostAddress host, Question& question) noexcept;
  void found(HostAddress host, std::uint64_t question, const Found& found) noexcept;
  void ask_for_all() noexcept;
  void found_all(const Table& table) noexcept;
  void nudge(HostAddress host) noexcept;
  /// The next message to each host to which `route` leads asks for the host again.
  void route_changed(const rtnetlink::RouteNews& route) noexcept;
  /// Forgets the host, and learns nothing about it until it is asked for again.
  void leave_to_routes(HostAddress host) noexcept;
  /// If not `believed`, the news only causes the host to be asked for again.
  void learn(const rtnetlink::Neighbour& neighbour, bool believed) noexcept;
  /// Without memory the host is asked for again.
  void remember(HostAddress host, const EthernetAddress& ethernet) noexcept;
  void no_longer_silent(HostAddress host) noexcept {
    if (silent_.unbind(key(host))) host_.peers().path_changed(host);
  }
  void forget(HostAddress host) noexcept;

  Host& host_;
  UringEngine& engine_;
  Asker& asker_;
  int interface_;
  UniqueFd discard_;  ///< A socket of UDP, for nudge().
  SocketId news_;
  std::unique_ptr<RouteWatch> routes_;
  Map<HostKey, Known> hosts_;
  Map<EthernetKey, HostAddress> ethernets_;
  Map<HostKey, Silent> silent_;
  std::uint64_t changes_ = 0;
  std::uint64_t questions_ = 0;  ///< The number of the last one.
  Time may_ask_for_all_{};
  bool asking_for_all_ = false;
  /// A set: the hosts of which there was news since the kernel was asked for all; its answer may be older than the
  /// news.
  Map<HostKey, std::monostate> told_of_;
  Time believes_from_{};  ///< News before this may be old.
};

}  // namespace lrpc::netrpc
