// ARP: the kernel's own, asked over rtnetlink. Is a host on this link, and what is its Ethernet address there?
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

/// Of a map, as HostKey: the seed is Host::hash_seed(), because whoever is on the link may choose its addresses.
struct EthernetKey {
  std::uint64_t seed = 0;
  EthernetAddress ethernet;
  [[nodiscard]] std::uint64_t hash() const noexcept { return mix(seed, ethernet.number()); }
  friend bool operator==(const EthernetKey&, const EthernetKey&) = default;
};

/// The neighbours on one interface. What has been learnt about them, and about the routes to them, is kept until the
/// kernel says that it has changed. All use is inside the monitor, and nothing waits there, but for make().
class Neighbours final : private SocketReader {
 public:
  /// `asker` outlives it but for its destruction: it gives no answers then. Asks the kernel for all that it knows.
  /// Errors: system_error.
  static Result<std::unique_ptr<Neighbours>> make(Host& host, UringEngine& engine, Asker& asker, int interface);
  ~Neighbours() { engine_.remove(news_); }

  /// Errors: host_unreachable (behind a gateway, on another interface, this host itself; or nobody knows yet). A host
  /// that is not known is asked for, first from the kernel, which then is made to ask the link (by an empty UDP
  /// datagram to the discard port: that needs no privilege), at most once in kRetry for one host. When the answer
  /// comes the paths have changed (Peers::path_changes()), and `resolved` is called.
  [[nodiscard]] Errc resolve(HostAddress host, EthernetAddress& ethernet) noexcept;
  /// Whether it may still answer: it has been asked for, and nobody has said that it is not there.
  [[nodiscard]] bool may_answer(HostAddress host) noexcept;
  /// Not known: host_unreachable; then the kernel is asked for all that it knows.
  [[nodiscard]] Errc resolve_reverse(EthernetAddress ethernet, HostAddress& host) noexcept;
  /// Whether the kernel's routes lead to it another way (a gateway, another interface), as far as is known.
  [[nodiscard]] bool routed_away(HostAddress host) noexcept;
  /// Whether it is known, and the kernel has said that its routes lead to it here. Until then resolve() has to be asked
  /// with each message: the kernel's answer may have been lost, and is asked for again.
  [[nodiscard]] bool routed_here(HostAddress host) noexcept;
  /// The interface has another index from now on, under which nothing is known yet; 0: none, no neighbour.
  void use_interface(int index) noexcept;
  /// Another number than before: what was resolved before may be wrong now.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

  /// Called with each host that is known from now on, or has another address.
  std::function<void(HostAddress)> resolved;

 private:
  static constexpr Duration kRetry = std::chrono::seconds(1);
  static constexpr Duration kDumpPause = std::chrono::milliseconds(10);
  /// Hosts remembered; the kernel's table is of this order.
  static constexpr std::size_t kRemembered = 4096;

  /// What the kernel says of a host.
  struct Found {
    bool on_link = false;
    EthernetAddress ethernet;  ///< Not known: the kernel does not know it either.
  };
  /// What the kernel says of all hosts.
  using Table = std::vector<rtnetlink::Neighbour>;
  /// The last question about a host. Set to {} by news that makes its answer old: then the next message asks again.
  struct Question {
    Time again{};              ///< When it may be asked again.
    std::uint64_t number = 0;  ///< 0: there is none whose answer counts.
  };
  /// A host whose Ethernet address is known. It is used at once, before the routes are known: most lead here.
  struct Known {
    EthernetAddress ethernet;
    bool routed_here = false;  ///< The kernel has said so.
    Question question;
  };
  /// A host that was asked for.
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

  /// Nothing: the kernel has not answered.
  [[nodiscard]] static std::optional<Found> find(rtnetlink::Requests& kernel, HostAddress host, int interface) noexcept;
  [[nodiscard]] static Table all(rtnetlink::Requests& kernel);
  /// At most once in kRetry: an answer may never come.
  void ask_for(HostAddress host, Question& question) noexcept;
  void found(HostAddress host, std::uint64_t question, const Found& found) noexcept;
  void ask_for_all() noexcept;
  void found_all(const Table& table) noexcept;
  void nudge(HostAddress host) noexcept;
  /// Each host that it leads to is asked for again when there is a message for it.
  void route_changed(const rtnetlink::RouteNews& route) noexcept;
  /// What is known of it is not used any more, nor learnt again, until it is asked for.
  void leave_to_routes(HostAddress host) noexcept;
  /// `believed`: else what it says of a host only makes that one be asked for again.
  void learn(const rtnetlink::Neighbour& neighbour, bool believed) noexcept;
  /// Without memory it is asked for again.
  void remember(HostAddress host, const EthernetAddress& ethernet) noexcept;
  void no_longer_silent(HostAddress host) noexcept;
  void forget_silent() noexcept;
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
  /// Hosts that news tell of since the kernel was asked for all: its answer may be older. A set.
  Map<HostKey, std::monostate> told_of_;
  Time believes_from_{};  ///< News before this may be old.
};

}  // namespace lrpc::netrpc
