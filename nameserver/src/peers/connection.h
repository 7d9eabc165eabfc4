// One connection to the nameserver: a client, a server, or both.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "loop/event_loop.h"
#include "lrpc/detail/nameserver/policy.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "quota/import_line.h"
#include "quota/unread.h"

namespace lrpc::nameserver {

using ExportId = std::uint64_t;
using BindingId = std::uint64_t;  ///< The serial of the server's connection, and a count within it (mod 2^32).

struct Connection {
  // Used by Peers.
  std::uint32_t serial = 0;
  shim::PeerSocket socket;
  std::weak_ptr<const void> open;  ///< Expired when the socket is closed.
  Peer peer;                       ///< With kMostGroupsKept of its groups at most: a policy gets a WholePeer.
  EventLoop::WatchId watch = 0;
  std::deque<shim::BinderMessage> outbox;  ///< Never with descriptors. While it is not empty, nothing is received.
  std::size_t fds_in_flight = 0;           ///< At most so many of those sent has the peer not read yet.
  Unread unread;
  bool closing = false;  ///< Nothing is sent or received any more; Peers::reap() frees it.

  // As a server, used by Registry. The pidfd exists from the first export on: a forked child may keep the socket open,
  // but the name must end with the process.
  UniqueFd pidfd;
  EventLoop::WatchId death_watch = 0;
  std::map<ExportId, std::string> exports;
  std::size_t export_bytes = 0;

  // As a server, used by Binder.
  ImportLine waiting;            ///< Imports of all its names that its clerk is to be asked about.
  std::set<ImportId> binds;      ///< Imports that its clerk is being asked about.
  EventLoop::TimerId ask_again;  ///< Set while imports wait for it to read, and no answer of its is due.
  std::chrono::milliseconds ask_again_pause{0};
  std::uint64_t bindings_issued = 0;

  // As a client, used by Binder.
  std::set<ImportId> imports;  ///< Those that have no answer yet.

  [[nodiscard]] BindingId next_binding() noexcept {
    return BindingId{serial} << 32 | static_cast<std::uint32_t>(++bindings_issued);
  }
  /// Whether next_binding() has ever returned this. After 2^32 of them an id stands for the last one that has had it.
  [[nodiscard]] bool has_issued(BindingId id) const noexcept {
    const auto age = static_cast<std::uint32_t>(bindings_issued - id);  // 0: the newest
    return id >> 32 == serial && age < bindings_issued;
  }
};

/// Whether the process of a server has ended. A forked child may still hold its socket. Precondition: it has a pidfd.
[[nodiscard]] bool has_ended(const Connection& server) noexcept;

/// One more than servers are told of, so that it is known that there are more.
inline constexpr std::size_t kMostGroupsKept = shim::ClientCredentials::kMostGroups + 1;

/// A connection's peer with all its groups. A connection keeps only some of many groups (up to 65,536, 256 KiB),
/// because no quota counts that memory. The rest is read again from the kernel, which keeps it with the socket. Throws
/// std::bad_alloc.
class WholePeer {
 public:
  explicit WholePeer(const Connection& connection) : kept_(connection.peer) {
    if (kept_.groups && kept_.groups->size() >= kMostGroupsKept)
      whole_ = Peer{kept_, shim::peer_groups(connection.socket.get())};
  }
  [[nodiscard]] const Peer& get() const noexcept { return whole_ ? *whole_ : kept_; }

 private:
  const Peer& kept_;
  std::optional<Peer> whole_;
};

/// `text` as it may be shown to somebody else: printable ASCII, at most shim::kMaxReasonLength bytes.
std::string sanitized(std::string_view text);

/// "process 12 (user 3)".
std::string describe_peer(const shim::Credentials& peer);

}  // namespace lrpc::nameserver
