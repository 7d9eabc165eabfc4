// The nameserver's state and what it does at each event. Everything here runs on the event loop's thread.
//
// The parts, one file each: core.cpp (connections: accept, receive, send, close), core_policy.cpp (who may do what),
// core_registry.cpp (export, withdraw, list, describe), core_binder.cpp (import, bind), core_unread.cpp (who does not
// read, who gives way to others).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/allocator_driver.h"
#include "loop/event_loop.h"
#include "loop/listen_socket.h"
#include "lrpc/nameserver.h"
#include "lrpc/shim/binder/binder_protocol.h"
#include "lrpc/shim/call/region.h"
#include "quota/unread.h"
#include "quota/user_accounts.h"
#include "quota/user_log.h"

namespace lrpc::nameserver {

using ExportId = std::uint64_t;
using ImportId = std::uint64_t;   ///< Ascending: the order of ids is the order of arrival.
using BindingId = std::uint64_t;  ///< The serial of the server's connection, and a count within it.

/// One peer: a client, a server, or both.
struct Connection {
  std::uint32_t serial = 0;
  shim::PeerSocket socket;
  std::weak_ptr<const void> open;  ///< Expired when the socket is closed.
  Peer peer;                       ///< Of its groups kMostGroupsKept at most: a policy gets a WholePeer.
  EventLoop::WatchId watch = 0;
  std::deque<shim::BinderMessage> outbox;  ///< Never with descriptors. While it is not empty nothing is read.
  std::size_t fds_in_flight = 0;           ///< Of those sent, at most so many has the peer not read yet.
  Unread unread;
  bool closing = false;  ///< Nothing is sent or heard any more; reap() frees it.

  // As a server. The pidfd is there from the first export on: a socket lives on in a forked child, a name must not.
  UniqueFd pidfd;
  EventLoop::WatchId death_watch = 0;
  std::map<ExportId, std::string> exports;
  std::size_t export_bytes = 0;
  std::set<ImportId> binds;      ///< Imports that its clerk is being asked about.
  EventLoop::TimerId ask_again;  ///< Set while imports wait for it to read, and no answer of its is due.
  std::chrono::milliseconds ask_again_pause{0};
  std::uint32_t bindings_issued = 0;

  // As a client.
  std::set<ImportId> imports;  ///< Those that have no answer yet.
};

/// As many as servers are told of, and one more: so that those are told that there are more.
inline constexpr std::size_t kMostGroupsKept = shim::ClientCredentials::kMostGroups + 1;

/// A connection's peer with all its groups. Those of who has many (up to 65,536, 256 KiB) are not kept for each
/// connection, which no quota would count: the kernel, who keeps them with the socket, is asked again. Throws
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

/// A name that can be imported. Lives as long as its server's connection, or until it is withdrawn.
struct Export {
  ExportId id = 0;
  Connection* server = nullptr;
  shim::OwnedInterfaceId interface;
  std::vector<AStackClass> classes;
  shim::RegionLayout layout;
  std::string text;
  std::string descriptors;
  [[nodiscard]] std::size_t bytes() const noexcept { return text.size() + descriptors.size(); }
};

/// What the nameserver holds of a binding between its BindRequest and its BindReply. Then it holds nothing.
struct PendingBind {
  BindingId id = 0;
  Connection* server = nullptr;
  shim::Nonce nonce{};
  std::vector<AStackClass> classes;
  UniqueFd region;
  std::uint64_t region_bytes = 0;  ///< Charged to the client's user.
  UniqueFd client_bell;
};

/// A request of a client to be bound: waits for its name (in Core::waiting_), or for a clerk (`bind`).
struct Import {
  Connection* client = nullptr;
  std::uint32_t request = 0;
  shim::ImportRequest wanted;
  std::optional<EventLoop::Clock::time_point> deadline;  ///< Of waiting for the name; none: for ever.
  EventLoop::TimerId timer;
  std::optional<PendingBind> bind;
};

class Core {
 public:
  /// `options` has its policy set, with which it begins. The loop must outlive the Core and not run any more when it is
  /// destroyed.
  Core(EventLoop& loop, ListenSocket listener, const NameserverOptions& options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Begins to listen to peers and to the stop descriptor.
  Status begin();

  /// Nameserver::set_policy(). Any thread.
  void set_policy(std::shared_ptr<Policy> policy);

  [[nodiscard]] const std::string& socket_path() const noexcept { return listener_.path(); }
  [[nodiscard]] AllocatorStatistics allocator_statistics() const {
    return allocator_ ? allocator_->statistics() : AllocatorStatistics{};
  }

 private:
  // core_policy.cpp: who may do what, and how much of it.
  Status begin_policy();
  void take_new_policy();
  void apply_policy();
  Status watch_extra(const ExtraWatch& extra);
  Status may_export(const Connection& peer, const shim::ExportRequest& body);
  Status may_import(const Connection& client, const std::string& name, const Connection* server);

  // core.cpp: connections.
  void begin_allocator();
  void accept_peers();
  void admit(UniqueFd socket);
  void pause_accepting();
  void on_ready(std::uint32_t serial, Readiness readiness);
  void on_message(Connection& peer, shim::BinderMessage message);
  void send(Connection& peer, std::uint32_t request, shim::BinderBody body);
  void fail(Connection& peer, std::uint32_t request, const Error& error);
  Status send_with_fds(Connection& peer, const shim::BinderMessage& message);
  void flush(Connection& peer);
  void protocol_error(Connection& peer, std::uint32_t request, std::string what);
  void doom(Connection& peer);
  void reap();
  void give_back_closed();
  [[nodiscard]] bool short_of_memory() const { return options_.short_of_memory && options_.short_of_memory(); }
  void log(LogLevel level, std::string_view line) const;
  void log_about(const shim::Credentials& peer, LogLevel level, std::string_view line);

  // core_unread.cpp: what peers do not read, and connections that others need.
  [[nodiscard]] bool room_in_flight(Connection& peer, std::size_t fds);
  void refresh_in_flight(Connection& peer);
  void leave_unread(Connection& peer);
  void forget_what_was_read();
  void look_for_unread_soon();
  void look_for_unread();
  bool take_connection_back(const shim::Credentials& newcomer);

  // core_registry.cpp: names. Each `on` answers one message.
  void on(Connection& peer, std::uint32_t request, shim::ExportRequest body);
  void on(Connection& peer, std::uint32_t request, const shim::WithdrawRequest& body);
  void on(Connection& peer, std::uint32_t request, const shim::ListRequest& body);
  void on(Connection& peer, std::uint32_t request, const shim::DescribeRequest& body);
  Status room_for_export(const Connection& peer, const shim::ExportRequest& body);
  Status watch_process(Connection& server);
  void on(Connection& peer, std::uint32_t request, const shim::WakeAllocator& body);
  void share_page(Connection& server);
  void remove_export(Connection& server, ExportId id);
  void remove_exports(Connection& server);

  // core_binder.cpp: imports.
  void on(Connection& peer, std::uint32_t request, shim::ImportRequest body);
  void on(Connection& peer, std::uint32_t request, const shim::BindReply& body);
  void serve_waiting(const std::string& name);
  void serve_waiting_of(const Connection& server);
  [[nodiscard]] bool is_network_domain(const Connection& peer) const;
  enum class Asked : std::uint8_t { yes, not_now };
  Result<Asked> ask_clerk(ImportId id, Import& import, Export& exported);
  void ask_again_soon(Connection& server);
  void on_withdrawn_meanwhile(ImportId id, Import& import, Connection& server);
  void introduce(ImportId id, Import& import);
  void wait_for_name(ImportId id, Import& import);
  void on_time_over(ImportId id);
  void end_bind(ImportId id, Import& import);
  void answer_import(ImportId id, const Error& error);
  void erase_import(ImportId id);
  void drop_imports(Connection& client);
  void orphan_binds(Connection& server);

  EventLoop& loop_;
  ListenSocket listener_;
  const NameserverOptions& options_;
  std::shared_ptr<Policy> policy_;  ///< The event loop's.
  std::mutex new_policy_mutex_;
  std::shared_ptr<Policy> new_policy_;  ///< Under the mutex: to be taken when the event is.
  UniqueFd new_policy_event_;
  EventLoop::WatchId new_policy_watch_ = 0;
  std::vector<EventLoop::WatchId> extra_watches_;
  EventLoop::WatchId listen_watch_ = 0;
  EventLoop::TimerId accept_pause_;
  std::uint32_t last_serial_ = 0;
  std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> connections_;
  UserAccounts accounts_;
  UserLog user_log_;
  std::vector<Connection*> doomed_;
  /// The sockets of connections that have ended, with descriptors that their peers have not read: Linux counts those
  /// until they are read, or the peer's end is closed.
  struct LeftUnread {
    shim::PeerSocket socket;
    std::weak_ptr<const void> open;
    uid_t user;
    std::size_t fds;
  };
  std::vector<LeftUnread> left_unread_;
  EventLoop::TimerId unread_look_;  ///< Set while there may be something that is not read.
  std::vector<std::pair<uid_t, std::weak_ptr<const void>>> closing_;  ///< Sockets that are not closed yet, and whose.

  std::optional<AllocatorDriver> allocator_;

  ExportId last_export_ = 0;
  std::map<std::string, Export, std::less<>> exports_;

  ImportId last_import_ = 0;
  std::unordered_map<ImportId, Import> imports_;
  std::map<std::string, std::set<ImportId>, std::less<>> waiting_;  ///< By name, in order of arrival.
  std::unordered_map<BindingId, ImportId> binds_;
};

/// `text` as it may be shown to somebody else: printable ASCII, at most shim::kMaxReasonLength bytes.
std::string sanitized(std::string_view text);

/// "process 12 (user 3)".
std::string describe_peer(const shim::Credentials& peer);

}  // namespace lrpc::nameserver
