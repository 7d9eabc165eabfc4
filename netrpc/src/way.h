// The way to a peer, for sessions that outlive one way.
#pragma once

#include <utility>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

/// The lower session through which the messages of an owner (a session) leave, and another one through which the peer's
/// may arrive. Both deliver to the owner (Session::above). The owner opens the way again when the paths to the peer
/// have changed.
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

  /// Messages leave through `session` from now on. Messages under way may still arrive through the former one.
  void take(SessionRef session) noexcept;
  /// The same for a session that the peer has chosen by sending through it. The next changed() returns true, because
  /// there may be a better one: only open() makes ARP ask for the peer, and changed() is true again when ARP has
  /// answered.
  void take_from_peer(SessionRef session) noexcept {
    take(std::move(session));
    changes_.doubt(peers(), owner_.peer());
  }
  /// The peer's messages arrive through `session`. The last two such sessions are remembered.
  void hear(Session& session) noexcept;
  /// Drops both sessions.
  void leave() noexcept {
    drop(leaving_);
    drop(arriving_);
  }
  /// Opens a session on `below` and takes it. Errors: those of Protocol::open(), and limit_reached without memory; then
  /// nothing changes.
  [[nodiscard]] Errc open(Protocol& below, const ParticipantSet& to) noexcept;
  /// Whether the paths to the peer have changed since the last changed() or take().
  [[nodiscard]] bool changed() noexcept { return changes_.noticed(peers(), owner_.peer()); }

  /// The participants for opening the way to where the peer is now: by its host, if that is known. The Ethernet address
  /// from which it was first heard may belong to another machine by now, and the port belongs to another protocol
  /// number.
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
  SessionRef arriving_;  ///< Never leaving_; may be null.
  PathChanges changes_;
};

}  // namespace lrpc::netrpc
