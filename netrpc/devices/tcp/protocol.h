// TCP's own objects: a session, which is a connection at a time, and the protocol. Private to this folder.
#pragma once

#include <deque>
#include <memory>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"
#include "lrpc/shim/system/fd.h"
#include "netrpc/devices/tcp/readiness.h"
#include "netrpc/devices/tcp/tcp.h"
#include "netrpc/src/record.h"

namespace lrpc::netrpc::tcp {

class TcpProtocol;

/// One peer. A session that was opened connects with the first message, and again with the next one after the connection
/// has ended; one that a peer has made ends with its connection.
class TcpSession final : public Session {
 public:
  TcpSession(TcpProtocol& protocol, Protocol& high, const ParticipantSet& participants, UniqueFd accepted);
  ~TcpSession() override;

  /// Errors: message_too_long, limit_reached (the peer does not read what was sent before), host_unreachable.
  [[nodiscard]] Errc push(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class TcpProtocol;
  [[nodiscard]] TcpProtocol& owner() const noexcept;
  [[nodiscard]] bool connect() noexcept;
  void ready(std::uint32_t events) noexcept;
  void receive() noexcept;
  void flush() noexcept;
  void watch() noexcept;
  /// The connection has ended, or is to.
  void end() noexcept;

  const bool passive_;
  UniqueFd socket_;          ///< None: not connected.
  std::uint64_t id_ = 0;     ///< Of the connection, in TcpProtocol::connections_.
  bool connecting_ = false;  ///< It is not known yet whether the peer accepts.
  bool receiving_ = false;   ///< A thread is on its way up with what it has received.
  RecordReader reader_;
  std::deque<Message> waiting_;  ///< To be sent, marks included; of the first, what has not been sent.
  std::size_t waiting_bytes_ = 0;
  Time moved_{};  ///< When something was last sent or received.
};

class TcpProtocol final : public Protocol {
 public:
  TcpProtocol(Host& host, std::string name, const TcpOptions& options, HostAddress bound);
  ~TcpProtocol() override;
  /// Errors: system_error.
  Status begin(UringEngine& engine);

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class TcpSession;
  struct Peer {
    std::uint64_t seed = 0;
    HostAddress host;
    std::uint16_t port = 0;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(seed, std::uint64_t{host.value} << 16 | port); }
    friend bool operator==(const Peer&, const Peer&) = default;
  };
  struct Connection {
    std::uint64_t id = 0;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(0, id); }
    friend bool operator==(const Connection&, const Connection&) = default;
  };
  static constexpr std::uint64_t kListening = 0;

  [[nodiscard]] Peer peer(const Participant& remote) const noexcept { return {seed_, remote.host, remote.port}; }
  /// One protocol uses it. Errors: name_taken.
  [[nodiscard]] Status used_by(Protocol& high, ProtocolNumber number);
  [[nodiscard]] Status listen();
  void ready(std::uint64_t id, std::uint32_t events) noexcept;
  void accept() noexcept;
  void admit(UniqueFd socket, const Participant& remote);
  [[nodiscard]] bool room_for(HostAddress peer) noexcept;
  void sweep() noexcept;
  /// Its socket is watched from here on. False: it is not, and the connection has ended.
  [[nodiscard]] bool watch_new(TcpSession& session) noexcept;
  void forget(TcpSession& session) noexcept;

  const TcpOptions options_;
  const HostAddress bound_;
  const std::uint64_t seed_;
  std::unique_ptr<Readiness> readiness_;
  Protocol* high_ = nullptr;
  ProtocolNumber number_ = 0;
  bool enabled_ = false;
  UniqueFd listening_;
  Map<Peer, SessionRef> sessions_;
  Map<Connection, TcpSession*> connections_;
  std::uint64_t last_id_ = kListening;
  Event sweep_;
  Event accept_again_;
};

}  // namespace lrpc::netrpc::tcp
