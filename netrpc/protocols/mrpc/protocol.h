// The protocol object: its sessions and records, and which of them gets a packet.
#pragma once

#include <memory>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/protocols/mrpc/client.h"
#include "netrpc/protocols/mrpc/server.h"
#include "netrpc/src/command_keys.h"

namespace lrpc::netrpc::mrpc {

/// How long to wait for a reply before anything has been measured: to a request of one packet, and of several.
inline constexpr Duration kFirstTimeout = std::chrono::milliseconds(10);
inline constexpr Duration kFirstTimeoutOfFragments = std::chrono::milliseconds(20);
/// The longest pause between the packets of a waiting client: a slow server's lost reply is noticed within this.
inline constexpr Duration kLongestTimeout = std::chrono::milliseconds(500);

struct Settings {
  std::size_t channels = 8;  ///< Channels to each peer, at the client.
  std::size_t queue = 4096;  ///< Calls to one peer that wait for a channel, or for its life.
  Duration give_up = std::chrono::seconds(5);
  Duration packet_life = std::chrono::seconds(60);
  std::size_t clients = 1024;                  ///< Hosts that this server keeps records of.
  std::size_t memory = std::size_t{32} << 20;  ///< Bytes of partial requests and saved replies, all together.
  std::uint32_t sequence = 0;                  ///< The last sequence number used.
};

class Monolithic final : public Protocol {
 public:
  Monolithic(Host& host, std::string name, Protocol& lower, Settings settings);
  ~Monolithic() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  void demux(Session& lower, Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  // ---- for the two halves ----
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  control::Statistics& counters() noexcept { return counted; }
  /// One sequence of numbers for all channels of all peers, so that a record at this end may be dropped at any time and
  /// the numbers of its channel never go back.
  [[nodiscard]] std::uint32_t next_sequence() noexcept { return ++sequence_; }
  [[nodiscard]] std::uint32_t last_sequence() const noexcept { return sequence_; }
  /// The largest payload of one packet through `lower`.
  [[nodiscard]] std::size_t single(Session& lower) noexcept;
  /// Sends a header without data.
  void send(Session& lower, const Header& header) noexcept { (void)try_send(lower, header, Message(host().pool())); }
  [[nodiscard]] Errc try_send(Session& lower, const Header& header, Message message) noexcept;
  /// The protocol that serves `command`; null: none.
  [[nodiscard]] Protocol* server_of(std::uint16_t command) noexcept {
    if (Protocol** const server = enabled_.resolve(command)) return *server;
    Protocol** const whoever = command == 0 ? nullptr : enabled_.resolve(0);
    return whoever == nullptr ? nullptr : *whoever;
  }
  /// Whether there is a record of `peer` as a server.
  [[nodiscard]] bool calls(HostAddress peer) noexcept { return peers_.resolve({host().hash_seed(), peer}) != nullptr; }
  void session_gone(ClientSession& session) noexcept {
    sessions_.unbind({session.peer(), session.participants().remote.command, &session.high()});
  }
  void start_sweeping() {
    if (!sweep_timer_.waiting()) host().events().schedule(sweep_timer_, settings_.packet_life / 4);
  }

 private:
  Status enable_below();
  void demux_to_client(Session& lower, const Header& header, Message&& message) noexcept;
  void demux_to_server(Session& lower, const Header& header, Message&& message) noexcept;
  void answer_query(Session& lower, const Header& header) noexcept;
  void sweep(bool now) noexcept;

  Protocol& lower_;
  const Settings settings_;
  std::uint32_t sequence_;
  Map<HostKey, std::unique_ptr<ClientPeer>> peers_;
  Map<CommandSessionKey, ClientSession*> sessions_;
  Map<std::uint16_t, Protocol*> enabled_;
  bool enabled_below_ = false;
  Server server_;
  Event sweep_timer_;
  /// Tells the watcher of reboots, which the host keeps, whether this object still exists. Destroyed first.
  std::shared_ptr<Monolithic*> self_;
};

}  // namespace lrpc::netrpc::mrpc
