// What header-less protocols have in common that choose between two others (RPC in the x-Kernel §3.1): one session for
// each peer and protocol number, whichever way its messages come.
#pragma once

#include <string>
#include <utility>

#include "lrpc/netrpc/session_cache.h"

namespace lrpc::netrpc::vip {

class VirtualProtocol;

/// A session over one or several lower ones. Lower sessions say through `above` whose they are.
class VirtualSession : public CachedSession {
 public:
  VirtualSession(VirtualProtocol& protocol, Protocol& high, const ParticipantSet& participants, const PeerKey& key);
  ~VirtualSession() override;
  void pop(Message message) noexcept { high().demux(*this, std::move(message)); }

  /// Opens what is needed and not open, as far as it can be. Errors: there is no way to the peer.
  [[nodiscard]] virtual Errc choose() = 0;
  /// Messages arrive through `lower`: it belongs to this session from now on.
  virtual void attach(Session& lower) = 0;

 private:
  friend class VirtualProtocol;
  /// By which it was found before the peer's host was known. Without an Ethernet address: it always was, or is not yet.
  PeerKey stranger_;
};

class VirtualProtocol : public Protocol {
 public:
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) final;
  Status open_enable(Protocol& high, const ParticipantSet& participants) final;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept final;
  Errc open_done(Session& lower, const ParticipantSet& participants) noexcept final;
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
  /// Asks again for the host of a session that was made before it was known. False: it is not known yet, or has a
  /// session already.
  [[nodiscard]] bool recognise(VirtualSession& session);
  /// Enables all protocols below for `number`, or none.
  [[nodiscard]] virtual Status enable_below(ProtocolNumber number) = 0;
  virtual void disable_below(ProtocolNumber number) noexcept = 0;
  /// What is asked of a virtual protocol but concerns those below.
  [[nodiscard]] virtual Errc control_below(control::Request& request) noexcept = 0;

 private:
  friend class VirtualSession;
  struct Number {
    Protocol* high = nullptr;  ///< Who has enabled it; null: it is only opened.
    bool opened = false;
    bool heard = false;  ///< Those below are enabled.
  };
  Status hear(ProtocolNumber number);
  [[nodiscard]] VirtualSession* session_of(Session& lower, const ParticipantSet& from, Errc& refusal);
  /// The peer's session. One that was made before the peer's host was known is met again here: there is never a second
  /// one as long as ARP knows which host has the Ethernet address.
  [[nodiscard]] VirtualSession* find(const PeerKey& key);
  /// `stranger`, by which `session` is found now, is the host of `key`.
  void meet(VirtualSession& session, const PeerKey& stranger, const PeerKey& key);

  Map<ProtocolNumber, Number> numbers_;
  std::size_t strangers_ = 0;          ///< Sessions with peers whose host is not known.
  Map<PeerKey, VirtualSession*> met_;  ///< Sessions with peers whose host was not, by the key of then.
  SessionCache sessions_;
};

}  // namespace lrpc::netrpc::vip
