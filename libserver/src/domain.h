// A server domain: what one Server object is made of, and the life of its
// bindings.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "accounts.h"
#include "clerk.h"
#include "domain_processors.h"
#include "estack_pool.h"
#include "lrpc/server/server.h"
#include "lrpc/shim/watcher.h"
#include "poller.h"
#include "poller_grant.h"
#include "private_sockets.h"
#include "secondary_regions.h"
#include "served_binding.h"
#include "trap_server.h"

namespace lrpc::server {

/// Thread-safe. Bindings are made by the clerk, on the watcher's thread, and
/// end there too, unless the server ends them.
class Domain {
 public:
  explicit Domain(ServerOptions options);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();

  /// For one more binding to an interface: limit_reached if the server, this
  /// client or its user has as much as the options allow. On the watcher's
  /// thread.
  [[nodiscard]] Status room_for(const shim::Credentials& client, const ServedInterface& interface, bool remote = false);
  /// On the watcher's thread: watches the binding's bell and its client. The
  /// binding is alive when it returns ok. Throws std::bad_alloc; then there is
  /// none.
  Status add_binding(ServedParts parts);
  /// The client is gone or has let go, or the server ends it: revokes, runs
  /// down the handles, and tells the server (on the watcher's thread, later if
  /// this is another). Any thread.
  void end_binding(std::uint64_t id) noexcept;
  [[nodiscard]] std::uint64_t next_binding_id() noexcept { return next_id_.fetch_add(1) + 1; }
  [[nodiscard]] std::shared_ptr<ServedBinding> find(std::uint64_t id);

  [[nodiscard]] Clerk& clerk() noexcept { return clerk_; }
  [[nodiscard]] PollerGrant& grant() noexcept { return grant_; }
  [[nodiscard]] PrivateSockets& private_sockets() noexcept { return private_sockets_; }
  [[nodiscard]] shim::Watcher& watcher() noexcept { return watcher_; }
  [[nodiscard]] const ServerOptions& options() const noexcept { return options_; }
  /// invalid_argument, and which, if an option has no meaning: then nothing is
  /// to be exported.
  [[nodiscard]] const Status& options_checked() const noexcept { return options_checked_; }
  [[nodiscard]] ServerStatistics statistics();

 private:
  /// A binding that find() finds and that is counted. Throws std::bad_alloc.
  std::shared_ptr<ServedBinding> make_binding(ServedParts parts);
  void forget_if_none_locked(pid_t process) noexcept;
  Status watch(const std::shared_ptr<ServedBinding>& binding);
  /// Takes the binding out and ends it; null if that has been done.
  std::shared_ptr<ServedBinding> remove(std::uint64_t id) noexcept;
  /// False: it has ended.
  [[nodiscard]] bool hear(const std::shared_ptr<ServedBinding>& binding);
  void on_bell(const std::shared_ptr<ServedBinding>& binding, shim::Watcher::Event event) noexcept;
  void associate_callers(const std::shared_ptr<ServedBinding>& hold, std::span<ServedAStack> astacks);

  const Status options_checked_;
  const ServerOptions options_;
  const shim::Watcher::Task wake_allocator_{[this] { clerk_.wake_allocator(); }};
  const shim::Watcher::Task supply_estacks_{[this] { estacks_.supply(); }};
  const std::shared_ptr<Accounts> accounts_;
  DomainProcessors processors_;
  PollerGrant grant_;
  Poller poller_;
  EStackPool estacks_;
  TrapServer traps_;
  SecondaryRegions secondary_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<ServedBinding>> bindings_;
  /// By client process: so that an import costs the same however many there
  /// are. Only those that are alive: a number of a process that has ended may
  /// be another's.
  std::map<pid_t, std::size_t> bindings_of_;
  std::atomic<std::uint64_t> next_id_{0};
  Clerk clerk_;
  PrivateSockets private_sockets_;
  shim::Watcher watcher_;  ///< Last: its thread ends before anything it touches goes.
};

}  // namespace lrpc::server
