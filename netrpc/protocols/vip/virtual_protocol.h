// The base of header-less protocols that choose between two others (RPC in the x-Kernel §3.1): one session for each
// peer and protocol number, whichever protocol below its messages come through.
#pragma once

#include <string>
#include <utility>

#include "lrpc/netrpc/session_cache.h"

namespace lrpc::netrpc::vip {

class VirtualProtocol;

/// A session over one or several lower ones. The `above` of a lower session points to it.
class VirtualSession : public CachedSession {
 public:
  VirtualSession(VirtualProtocol& protocol, Protocol& high, const ParticipantSet& participants, const PeerKey& key);
  ~VirtualSession() override;
  void pop(Message message) noexcept { high().demux(*this, std::move(message)); }

  /// Opens the lower sessions that are needed and not open, as far as possible. Errors: none leads to the peer.
  [[nodiscard]] virtual Errc choose() = 0;
  /// Messages arrive through `lower`: it belongs to this session from now on.
  virtual void attach(Session& lower) = 0;

 private:
  friend class VirtualProtocol;
  /// The key by which it was found before the peer's host was known. Without an Ethernet address: the host was known
  /// from the beginning, or is still unknown.
  PeerKey stranger_;
};

class VirtualProtocol : public Protocol {
 public:
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) final;
  Status open_enable(Protocol& high, const ParticipantSet& participants) final;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept final;
  Errc open_done(Session& lower, const ParticipantSet& participants) noexcept final {
    Errc refusal = Errc::ok;
    return session_of(lower, participants, refusal) != nullptr ? Errc::ok : refusal;
  }
  void demux(Session& lower, Message message) noexcept final;
  Errc control(control::Request& request) noexcept final;

 protected:
  VirtualProtocol(Host& host, std::string name, std::size_t sessions, Duration idle)
      : Protocol(host, std::move(name)), sessions_(host, sessions, idle) {}

  [[nodiscard]] virtual VirtualSession* make_session(Protocol& high, const ParticipantSet& participants,
                                                     const PeerKey& key) = 0;
  [[nodiscard]] virtual HostAddress peer_of(Session& lower, const ParticipantSet& participants) {
    return peer_host(lower, participants);
  }
  /// Asks again for the host of a session that was made before its host was known. False: the host is still unknown, or
  /// has a session already.
  [[nodiscard]] bool recognise(VirtualSession& session);
  /// Enables all protocols below for `number`, or none.
  [[nodiscard]] virtual Status enable_below(ProtocolNumber number) = 0;
  virtual void disable_below(ProtocolNumber number) noexcept = 0;
  /// Answers a request to a virtual protocol that concerns the protocols below.
  [[nodiscard]] virtual Errc control_below(control::Request& request) noexcept = 0;

 private:
  friend class VirtualSession;
  struct Number {
    Protocol* high = nullptr;  ///< The protocol that has enabled it; null: it is only opened.
    bool opened = false;
    bool heard = false;  ///< The protocols below are enabled for it.
  };
  Status hear(ProtocolNumber number);
  [[nodiscard]] VirtualSession* session_of(Session& lower, const ParticipantSet& from, Errc& refusal);
  /// The peer's session. It also finds one that was made before the peer's host was known. So there is never a second
  /// session, as long as ARP knows which host has the Ethernet address.
  [[nodiscard]] VirtualSession* find(const PeerKey& key);
  /// `session`, which is found by `stranger` now, belongs to the host of `key`.
  void meet(VirtualSession& session, const PeerKey& stranger, const PeerKey& key);

  Map<ProtocolNumber, Number> numbers_;
  std::size_t strangers_ = 0;          ///< Sessions with peers whose host is not known.
  Map<PeerKey, VirtualSession*> met_;  ///< Sessions whose peer's host became known later, by their first key.
  SessionCache sessions_;
};

}  // namespace lrpc::netrpc::vip
