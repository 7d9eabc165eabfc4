// The way to a peer, for sessions that outlive it.
#pragma once

#include <utility>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

/// Through which session below the messages of a session leave, and through which other one the peer's may arrive. Both
/// deliver to the session that owns this (Session::above). Opened again where the paths to the peer have changed.
class Way {
 public:
  explicit Way(Session& owner) noexcept : owner_(owner) {}
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
  ~Way() { leave(); }

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(leaving_); }
  [[nodiscard]] Session* get() const noexcept { return leaving_.get(); }
  [[nodiscard]] Session* operator->() const noexcept { return leaving_.get(); }
  [[nodiscard]] Session& operator*() const noexcept { return *leaving_; }

  /// Messages leave through `session` from now on. What is under way may still arrive through the one before.
  void take(SessionRef session) noexcept;
  /// The same for one that the peer has chosen, by sending through it: changed() says once that there may be a better
  /// one. Only who asks for that makes ARP ask for the peer, and hears of it when ARP has answered.
  void take_from_peer(SessionRef session) noexcept {
    take(std::move(session));
    changes_.doubt(peers(), owner_.peer());
  }
  /// The peer's messages arrive through `session`. Of several the last two are remembered.
  void hear(Session& session) noexcept;
  /// No messages leave any more, nor arrive.
  void leave() noexcept;
  /// Opens it on `below`, and takes that. Errors: those of open(); then it stays as it is.
  [[nodiscard]] Errc open(Protocol& below, const ParticipantSet& to);
  /// Where the paths to the peer have changed since this was asked, or the way was taken.
  [[nodiscard]] bool changed() noexcept { return changes_.noticed(peers(), owner_.peer()); }

  /// Whom to open so that the peer is looked for where it is now: by its host, if that is known. The device address
  /// from which it was heard first may be another machine's by now; the port was the other protocol number's.
  [[nodiscard]] static ParticipantSet by_host(ParticipantSet to) noexcept {
    if (!to.remote.host.known()) return to;
    to.remote.ethernet = {};
    to.remote.port = 0;
    return to;
  }

 private:
  [[nodiscard]] Peers& peers() const noexcept { return owner_.protocol().host().peers(); }
  void drop(SessionRef& session) noexcept {
    if (session && session->above == &owner_) session->above = nullptr;
    session = {};
  }

  Session& owner_;
  SessionRef leaving_;
  SessionRef arriving_;  ///< Another one than leaving_, or none.
  PathChanges changes_;
};

}  // namespace lrpc::netrpc
