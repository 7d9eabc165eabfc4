// TCP's session, which has one connection at a time, and its protocol object. Private to this folder.
#pragma once

#include <list>
#include <memory>
#include <optional>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/fifo_queue.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"
#include "netrpc/devices/tcp/readiness.h"
#include "netrpc/devices/tcp/tcp.h"
#include "netrpc/src/host_shares.h"
#include "netrpc/src/record.h"

namespace lrpc::netrpc::tcp {

class TcpProtocol;

/// A session with one peer. If this host has opened it, it connects with the first message, and again with the next one
/// after the connection has ended. If only the peer has made it, it ends with its connection.
class TcpSession final : public Session {
 public:
  TcpSession(TcpProtocol& protocol, Protocol& high, const ParticipantSet& participants, UniqueFd accepted);
  ~TcpSession() override { end(); }

  /// Errors: message_too_long; limit_reached (the peer, or other peers on its host, do not read what was sent before,
  /// and then a connection that the peer has made ends; or this host lacks memory, descriptors or ports);
  /// host_unreachable.
  [[nodiscard]] Errc push(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class TcpProtocol;
  [[nodiscard]] TcpProtocol& owner() const noexcept;
  [[nodiscard]] Errc connect() noexcept;
  void ready(std::uint32_t events) noexcept;
  void receive() noexcept;
  void flush() noexcept;
  void watch() noexcept;
  void take_share() noexcept;
  /// Whether a message of this footprint may wait for the peer behind the waiting ones.
  [[nodiscard]] bool may_wait(std::size_t footprint) const noexcept;
  /// More than half of what may wait does, in a session that only the peer has made: receives nothing more until the
  /// peer has read some.
  [[nodiscard]] bool congested() const noexcept;
  /// The peer sends no more, nothing waits to be sent to it, and nobody else refers to the session. `own`: the number
  /// of references of the protocol's own.
  [[nodiscard]] bool done(std::size_t own) const noexcept {
    return half_closed_ && waiting_.empty() && references() == own;
  }
  /// Ends the connection, or cleans up after its end.
  void end() noexcept;

  bool passive_;              ///< This host has not opened it.
  HostShares::Part place_;    ///< Its place among those that peers may make. None: opened, or the connection has ended.
  UniqueFd socket_;           ///< None: not connected.
  std::uint64_t id_ = 0;      ///< Of the connection, in TcpProtocol::connections_.
  bool connecting_ = false;   ///< It is not known yet whether the peer accepts.
  bool receiving_ = false;    ///< A thread is delivering what it has received.
  bool half_closed_ = false;  ///< The peer sends no more, but may read.
  RecordReader reader_;
  struct Waiting {
    Message message;  ///< With its record mark; of the first message, the unsent rest.
    std::size_t footprint = 0;
  };
  FifoQueue<Waiting> waiting_;
  std::size_t footprint_ = 0;  ///< Of all of them,
  HostShares::Part share_;     ///< counted for the peer's host.
  Time moved_{};               ///< When something was last sent; or received, while nothing waited to be sent.
  /// Its list entry, which is moved into TcpProtocol::connected_ while it is connected.
  std::list<TcpSession*> entry_{this};
  const std::list<TcpSession*>::iterator in_list_ = entry_.begin();
};

class TcpProtocol final : public Protocol {
 public:
  TcpProtocol(Host& host, std::string name, const TcpOptions& options, HostAddress bound);
  ~TcpProtocol() override { sessions_.clear(); }
  /// Errors: system_error.
  Status begin(UringEngine& engine);

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class TcpSession;
  static constexpr std::uint64_t kListening = 0;

  [[nodiscard]] HostKey peer(const Participant& remote) const noexcept { return {seed_, remote.host, remote.port}; }
  /// Notes the one protocol that uses it. Errors: name_taken.
  [[nodiscard]] Status used_by(Protocol& high, ProtocolNumber number);
  [[nodiscard]] Status listen();
  void listen_again() noexcept {
    if (!readiness_->watch_again(listening_.get(), kListening, EPOLLIN)) ++counted.failed;
  }
  void ready(std::uint64_t id, std::uint32_t events) noexcept;
  [[nodiscard]] std::uint64_t whose(std::uint64_t id) noexcept;
  void accept() noexcept;
  void admit(UniqueFd socket, const Participant& remote);
  /// Whether this host may open one more session.
  [[nodiscard]] bool may_open() noexcept;
  /// A place for one more session that this peer makes. None: its share is used up. Throws std::bad_alloc.
  [[nodiscard]] HostShares::Part place_for(HostAddress peer);
  [[nodiscard]] std::size_t look_on() noexcept;
  void drop_unused(bool connected, std::size_t looks) noexcept;
  void sweep() noexcept;
  /// Begins to watch the session's socket. False: it could not, and the connection has ended.
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
  std::optional<Time> left_waiting_;  ///< When the last accept() left some in the queue, if it did.
  HostShares places_;                 ///< Of sessions that peers have made. Outlives the sessions.
  HostShares footprints_;             ///< Of what waits to be sent. Outlives the sessions.
  Map<HostKey, SessionRef> sessions_;
  std::list<TcpSession*> opened_;  ///< Those that this host has opened, in the order in which to look at them.
  Map<std::uint64_t, TcpSession*> connections_;
  std::list<TcpSession*> connected_;  ///< The same, in the order in which sweep() looks at them.
  std::size_t unswept_ = 0;           ///< Of those, how many at the front it has still to look at in this round.
  std::uint64_t last_id_ = kListening;
  Event sweep_;
  Event accept_again_;
};

}  // namespace lrpc::netrpc::tcp
