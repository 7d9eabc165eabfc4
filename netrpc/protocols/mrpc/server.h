// The server's half: for each client host its life and its channels, each with the last call that arrived on it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/protocols/mrpc/fragments.h"

namespace lrpc::netrpc::mrpc {

class Monolithic;
class Server;
struct Client;

/// One channel of one client host.
struct ServerChannel {
  enum class State : std::uint8_t {
    unused,     ///< Nothing is known: any sequence number is new.
    receiving,  ///< Parts of a request are here.
    executing,  ///< The server protocol has the request, or has dropped it without an answer.
    replied,    ///< The reply is saved until the client has it, or was lost for want of memory.
  };
  ServerChannel(Client& its_client, std::uint16_t its_number) noexcept : client(its_client), number(its_number) {}

  Client& client;
  const std::uint16_t number;
  State state = State::unused;
  bool acknowledged = false;  ///< The client has the whole reply.
  Errc error = Errc::ok;      ///< Instead of a reply.
  std::uint16_t command = 0;
  std::uint32_t sequence = 0;
  std::uint16_t fragments = 0;    ///< Of the request.
  std::uint32_t last_active = 0;  ///< In sweeps.
  std::size_t held = 0;           ///< Bytes that count against Settings::memory.
  Incoming request;
  Outgoing reply;
  SessionRef session;
};

/// The session through which the server protocol answers the requests of one channel, one after the other.
class ServerSession final : public Session {
 public:
  ServerSession(Protocol& mrpc, Server& server, Protocol& high, const ParticipantSet& participants,
                ServerChannel& channel) noexcept
      : Session(mrpc, high, participants), server_(server), channel_(&channel) {}
  void reply(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  void set_command(std::uint16_t command) noexcept { mutable_participants().local.command = command; }
  /// The channel stops using it. `at_work`: the request is given up while the server works on it; its answer is
  /// dropped.
  void detach(bool at_work) noexcept;

 private:
  void unreferenced() noexcept override {
    if (abandoned_ != nullptr) --*abandoned_;
    delete this;
  }
  Server& server_;
  ServerChannel* channel_;
  std::shared_ptr<std::size_t> abandoned_;  ///< Set when it is detached at work: counts such requests.
};

/// One client host, in its present life.
struct Client {
  /// Ended lives of a host that are remembered, because their packets may be under way. More in a packet life are
  /// refused.
  static constexpr std::size_t kDeadLives = 8;
  struct DeadLife {
    BootId boot_id = 0;
    std::uint32_t died = 0;  ///< In sweeps.
  };

  HostAddress host;
  BootId boot_id = 0;
  SessionRef lower;
  std::size_t held = 0;  ///< Bytes, of all its channels.
  std::size_t single = 0;
  PathChanges path_changes;  ///< Since `single` was asked for.
  std::uint32_t last_active = 0;
  std::array<DeadLife, kDeadLives> dead{};
  /// How many requests that were given up, in all its lives, are still being executed. From kMaxChannels on no other
  /// request begins; a new life may give up as many again at once. The record stays until it is zero.
  std::shared_ptr<std::size_t> abandoned = std::make_shared<std::size_t>(0);
  std::array<std::unique_ptr<ServerChannel>, kMaxChannels> channels;
};

class Server {
 public:
  explicit Server(Monolithic& mrpc);
  ~Server();

  /// A request or a probe that is meant for this life of this host.
  void on_request(Session& lower, const Header& header, Message&& message) noexcept;
  void on_reply_ack(const Header& header) noexcept;
  void reply(ServerChannel& channel, Message&& message) noexcept;
  /// Answers a request with an error.
  void refuse(ServerChannel& channel, Errc reason) noexcept;
  /// Drops the bytes of a channel after a packet life without a packet, and the record itself once no packet of its
  /// last call can arrive any more. `tick`: a quarter of a packet life has passed.
  void sweep(bool tick) noexcept;
  [[nodiscard]] bool knows(HostAddress host) noexcept;
  [[nodiscard]] std::size_t records() const noexcept { return clients_.size(); }

 private:
  [[nodiscard]] Client* client_of(Session& lower, const Header& header) noexcept;
  [[nodiscard]] bool begin_life(Client& client, BootId boot_id) noexcept;
  void on_known(ServerChannel& channel, const Header& header, Message&& message) noexcept;
  [[nodiscard]] bool begin(ServerChannel& channel, const Header& header) noexcept;
  void on_fragment(ServerChannel& channel, const Header& header, Message&& message) noexcept;
  void execute(ServerChannel& channel, Message&& request) noexcept;
  void acknowledge_request(const ServerChannel& channel, std::uint16_t mask) noexcept;
  void send_reply(ServerChannel& channel, std::uint16_t mask, bool please_ack) noexcept;
  void cut_anew(ServerChannel& channel, const Header& refused, bool first) noexcept;
  /// No link carries the reply. This call is lost at once, and no other one.
  void lose_reply(ServerChannel& channel) noexcept {
    let_go(channel);
    channel.error = Errc::call_lost;
    send_reply(channel, 1, false);
  }
  /// Gives the request up. The server protocol may still execute it, but nobody waits for the answer.
  void abandon(ServerChannel& channel) noexcept {
    static_cast<ServerSession&>(*channel.session).detach(true);
    channel.session = {};
  }
  /// Drops the partial request or the saved reply.
  void let_go(ServerChannel& channel) noexcept {
    channel.request.clear();
    channel.reply.whole.clear();
    channel.client.held -= channel.held;
    held_ -= std::exchange(channel.held, 0);
  }
  void forget(ServerChannel& channel) noexcept;
  /// Whether there is room for `bytes` more of `client`, and it leaves as much free for others.
  [[nodiscard]] bool has_room(const Client& client, std::size_t bytes) const noexcept;
  void hold(ServerChannel& channel, std::size_t bytes) noexcept {
    channel.held += bytes;
    channel.client.held += bytes;
    held_ += bytes;
  }
  [[nodiscard]] Header header(const ServerChannel& channel, Type type) const noexcept;
  /// A packet life has passed since `last_active`.
  [[nodiscard]] bool outlived(std::uint32_t last_active) const noexcept { return sweeps_ - last_active > 4; }
  /// No packet of the record's last call can arrive any more.
  [[nodiscard]] bool over(std::uint32_t last_active) const noexcept { return sweeps_ - last_active > record_life_; }

  Monolithic& mrpc_;
  const std::uint32_t record_life_;  ///< In sweeps.
  Map<HostKey, std::unique_ptr<Client>> clients_;
  std::size_t held_ = 0;
  std::uint32_t sweeps_ = 0;
};

}  // namespace lrpc::netrpc::mrpc
