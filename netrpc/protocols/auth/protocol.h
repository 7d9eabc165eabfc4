// AUTH's protocol object and its sessions: one per peer and protocol number above.
#pragma once

#include <memory>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/auth/peer.h"

namespace lrpc::netrpc::auth {

class AuthProtocol;

struct AuthOptions {
  std::string keys;  ///< The file.
  Settings settings;
  std::size_t peers = 4096;
  std::size_t sessions = 4096;
  Duration idle = std::chrono::minutes(5);
};

class AuthSession final : public CachedSession {
 public:
  AuthSession(AuthProtocol& protocol, Protocol& high, const ParticipantSet& participants, const PeerKey& key,
              Peer& peer);
  ~AuthSession() override;
  [[nodiscard]] Errc push(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  void pop(Message message) noexcept;

 private:
  Peer& peer_;
};

class AuthProtocol final : public Protocol {
 public:
  AuthProtocol(Host& host, std::string name, Protocol& below, AuthOptions options, KeyRing keys);
  ~AuthProtocol() override;
  /// Enables this protocol at the layer below, for packets of any peer. Call it once, before anything else.
  [[nodiscard]] Status enable_below();

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  void demux(Session& lower, Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class AuthSession;

  [[nodiscard]] HostKey key_of(HostAddress host) const noexcept { return {this->host().hash_seed(), host}; }
  /// Null: there are too many peers, or memory is short.
  [[nodiscard]] Peer* peer_of(HostAddress host, const Key& key);
  void input(Session& lower, Message message);
  void handshake(Session& lower, const Prefix& prefix, const Key& key, std::span<const std::byte, kLeast> head,
                 const Message& rest);
  void data(Session& lower, const std::byte* head, Message message);
  void nudge(Session& lower, HostAddress peer, std::uint32_t association) noexcept;
  [[nodiscard]] bool may_nudge() noexcept;
  void deliver(Peer& peer, Message message);
  void sweep(bool everything) noexcept;
  void learn_advertised(Protocol& high) noexcept;

  Protocol& below_;
  const AuthOptions options_;
  KeyRing keys_;
  Map<ProtocolNumber, Protocol*> enabled_;
  std::size_t advertised_ = 0;  ///< The longest message that a protocol above has announced.
  std::int64_t nudges_ = 0;     ///< How many may be sent now.
  Time nudges_counted_{};
  Event sweep_;
  Time may_drop_{};                            ///< When idle sessions may be dropped again for a new peer.
  Map<HostKey, std::unique_ptr<Peer>> peers_;  // destroyed after the sessions, which refer to them
  SessionCache sessions_;
};

}  // namespace lrpc::netrpc::auth
