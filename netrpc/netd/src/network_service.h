// Where the graph and the remote broker meet: towards the broker a Transport, whose calls go out as SELECT's commands;
// towards the graph the protocol on top, whose commands the broker serves.
//
// A request is the command's bytes; a reply is {u16 refusal, in network order; 0: served} and the reply's bytes.
//
// One command is its own: kAgree, by which two hosts tell each other the MTU of the link by which each receives. The
// request is {u32 MTU}, the reply {u32 MTU, u32 longest reply to you}, in network order; an MTU of 0 is not known. It
// fits in any packet, and is sent before messages that may not.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"
#include "lrpc/netrpc/path/broker.h"
#include "workers.h"

namespace lrpc::netd {

struct NetworkStatistics {
  std::uint64_t calls = 0;         ///< Sent to other hosts.
  std::uint64_t calls_failed = 0;  ///< Of those, without a reply.
  std::uint64_t served = 0;        ///< Commands of other hosts.
  std::uint64_t refused = 0;       ///< Of those, because too many waited, or of a host whose address is not known.
};

class NetworkService final : public netrpc::Protocol, public netpath::Transport {
 public:
  /// `below`: a transaction service with commands (SELECT). `groups`: instances of GROUP. `receivers`: threads that
  /// receive when no caller does; all but one may serve commands, so that one can always receive. Inside the monitor.
  NetworkService(netrpc::Host& host, netrpc::Protocol& below, std::vector<netrpc::Protocol*> groups,
                 unsigned receivers);
  ~NetworkService() override;

  /// Opens whatever lies below, so that nothing has to be opened later; other hosts' commands fail until serve_with().
  /// Inside the monitor. Errors: those of open_enable().
  Status enable();
  /// Lets `service` answer the commands of other hosts. After enable(). Not inside the monitor.
  void serve_with(netpath::RemoteService& service);
  /// No command is being served when this returns, and none will be. Not inside the monitor.
  void stop_serving() noexcept;
  /// Calls under way end with peer_gone, and all later ones. Not inside the monitor.
  void stop_calling() noexcept;

  // ---- Transport ----
  std::string why(netpath::HostAddress host, Errc outcome) override;
  Errc agree(netpath::HostAddress host, netpath::MessageSizes& sizes,
             std::chrono::milliseconds timeout) noexcept override;
  Errc call(netpath::HostAddress host, std::uint16_t command, std::span<const std::byte> request,
            std::span<std::byte> reply, std::size_t& reply_size, std::chrono::milliseconds timeout,
            const netpath::Gone& gone) noexcept override;
  std::optional<netpath::Group> group(std::string_view name) override;
  Errc call_group(netpath::HostAddress group, std::uint16_t command, std::span<const std::byte> request,
                  std::span<std::byte> reply, std::size_t& reply_size, netpath::Collation& collation,
                  std::chrono::milliseconds timeout, const netpath::Gone& gone) noexcept override;

  // ---- Protocol ----
  void call_demux(netrpc::Session& lower, netrpc::Message request) noexcept override;
  [[nodiscard]] Errc control(netrpc::control::Request& request) noexcept override;

  /// Inside the monitor.
  [[nodiscard]] const NetworkStatistics& statistics() const noexcept { return statistics_; }

 private:
  struct Called {
    std::uint64_t seed = 0;
    netrpc::HostAddress host;
    std::uint16_t command = 0;
    [[nodiscard]] std::uint64_t hash() const noexcept {
      return netrpc::mix(seed, std::uint64_t{host.value} << 16 | command);
    }
    friend bool operator==(const Called& a, const Called& b) noexcept {
      return a.host == b.host && a.command == b.command;
    }
  };
  static constexpr std::size_t kRefusal = 2;
  static constexpr std::uint16_t kAgree = 0x100;  ///< No command of the broker's.
  /// More than the commands that the broker serves, so that some are left for those that it refuses.
  static constexpr std::size_t kWorkers = netpath::BrokerOptions::kMaxCommands + 16;

  class Waiting;
  /// To a host, or to all members of a group.
  Errc call(netrpc::HostAddress to, std::uint16_t command, std::span<const std::byte> request,
            std::span<std::byte> reply, std::size_t& reply_size, netpath::Collation* collation,
            std::chrono::milliseconds timeout, const netpath::Gone& gone) noexcept;
  /// What `host` is called through; null: no such group.
  [[nodiscard]] netrpc::Protocol* way_to(netrpc::HostAddress host) noexcept;
  Result<netrpc::SessionRef> session_to(netrpc::HostAddress host, std::uint16_t command) noexcept;
  /// Translates the graph's outcome into Transport's. A limit that is reached in the graph is this host's, or the
  /// other's where SELECT says that it has no room: nobody can tell from here. A refusal of the other host's broker is
  /// in its reply.
  [[nodiscard]] static Errc transport_outcome(Errc outcome) noexcept;
  /// The longest message through a session to, or from, another host, in bytes.
  [[nodiscard]] std::size_t longest(netrpc::Session& session) const noexcept;
  /// The host's boot id that was heard last; 0: none.
  [[nodiscard]] netrpc::BootId life_of(netrpc::HostAddress host) noexcept;
  /// As agree(), and tells the other host that packets of `own_mtu` bytes reach this one.
  [[nodiscard]] Errc agree_on(std::uint32_t own_mtu, netpath::HostAddress to, netpath::MessageSizes& sizes,
                              std::chrono::milliseconds timeout) noexcept;
  /// From now on packets to the host have at most `mtu` bytes; 0: as before. `longest_request`: MessageSizes::request.
  [[nodiscard]] Errc take_mtu(std::uint32_t mtu, netpath::HostAddress to, std::size_t& longest_request) noexcept;
  /// Asks the routers on the path whether they carry less, and waits for the answer, at most `left`.
  void ask_path(netpath::HostAddress to, std::chrono::milliseconds round_trip, std::chrono::milliseconds left) noexcept;
  [[nodiscard]] bool may_ask_path(netrpc::HostAddress to) noexcept;
  void answer_agree(netrpc::Session& lower, netrpc::Message request) noexcept;
  [[nodiscard]] netrpc::Message answer(Command& command) noexcept;
  [[nodiscard]] netrpc::Message refusal(Errc code) noexcept;
  void serve_in_worker(Command command) noexcept;
  void forget_unused() noexcept;
  void look_who_has_gone() noexcept;

  netrpc::Protocol& below_;
  const std::vector<netrpc::Protocol*> groups_;
  const unsigned receivers_;
  std::size_t max_message_ = 0;
  std::atomic<netpath::RemoteService*> service_{nullptr};
  bool enabled_ = false;
  bool serving_ = false;
  bool calling_ = true;
  unsigned served_by_receivers_ = 0;  ///< Commands that run now in threads of the engine.
  NetworkStatistics statistics_;
  netpath::Arrival last_arrival_ = 0;
  struct Asked {
    netrpc::HostAddress host;
    netrpc::Time at{};
  };
  std::array<Asked, 64> asked_{};                     ///< Hosts whose paths were asked for their MTU lately.
  netrpc::Map<Called, netrpc::SessionRef> sessions_;  ///< To hosts that were called lately.
  netrpc::Event forget_;
  Waiting* waiting_ = nullptr;  ///< The first of all calls under way.
  netrpc::Event look_;
  Workers workers_;
  /// Tells the watcher of reboots, which the host keeps, whether this is still there.
  std::shared_ptr<NetworkService*> self_;
};

}  // namespace lrpc::netd
