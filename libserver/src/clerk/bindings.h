// The bindings of a server domain, and what executes their calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "call/served_binding.h"
#include "estacks/estack_pool.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/system/watcher.h"
#include "poller/domain_processors.h"
#include "poller/poller_grant.h"
#include "poller/poller_team.h"
#include "quota/accounts.h"
#include "secondary_regions.h"
#include "trap/trap_server.h"

namespace lrpc::server {

/// Thread-safe. The clerk and the private sockets make bindings, on the watcher's thread. Bindings end on that thread,
/// too, unless the program ends them.
class Bindings {
 public:
  /// The references must outlive it; the watcher may be constructed later.
  Bindings(const ServerOptions& options, PollerGrant& grant, shim::Watcher& watcher);
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  /// Whether there is room for one more binding to `interface` by this gate: limit_reached if the server, this client
  /// process or its user (callers of other hosts are one user) has as much as it may have; not_supported if the gate is
  /// trap, and no listener could be told from other descriptors. `told`: see ServedParts. On the watcher's thread.
  [[nodiscard]] Status room_for(const shim::Credentials& client, pid_t told, const ServedInterface& interface,
                                shim::Gate gate);
  /// Makes a binding and watches its bell and its client. The binding is alive when this returns ok. Throws
  /// std::bad_alloc; then there is no binding. On the watcher's thread.
  Status add(ServedParts parts);
  /// Once the client has its answer: has an idle E-stack, if any, stand by for its first call. On the watcher's thread.
  void expect_call(std::uint64_t id) noexcept;
  /// The client has died or unbound, or the program ends the binding: revokes it, runs down the handles, and calls
  /// on_unbound (on the watcher's thread, later if this is another). Any thread.
  void end(std::uint64_t id) noexcept;
  /// If another thread is ending the binding: waits until the handles have been run down. Returns at once if this
  /// thread is running a binding down itself, because the other thread may wait for that.
  void wait_until_ended(std::uint64_t id) noexcept;
  /// The server ends: waits for running procedures, for end() on other threads, and for running hooks of callback stubs
  /// that nobody else holds, which may call end() meanwhile. on_unbound is not called. No binding may be added any
  /// more.
  void end_all();
  /// The same on a thread that runs procedures (runs_here()), which cannot wait for itself: waits for nothing. What the
  /// bindings hold is not freed, and this object must never be destroyed.
  void abandon_all();
  /// Whether the calling thread runs procedures.
  [[nodiscard]] bool runs_here() const { return pollers_.runs_here() || estacks_.runs_here() || traps_.runs_here(); }
  [[nodiscard]] std::uint64_t next_id() noexcept { return next_id_.fetch_add(1) + 1; }
  [[nodiscard]] std::shared_ptr<ServedBinding> find(std::uint64_t id);
  void count(ServerStatistics& counted);

 private:
  using OfNumbers = std::map<std::uint64_t, std::shared_ptr<ServedBinding>>;
  /// Revokes every binding, and returns them.
  OfNumbers revoke_all();
  /// Makes a binding that find() finds and that is counted. Throws std::bad_alloc.
  std::shared_ptr<ServedBinding> make(ServedParts parts);
  void forget_if_none_locked(pid_t process) noexcept;
  Status watch(const std::shared_ptr<ServedBinding>& binding);
  /// Removes the binding from bindings_ and ends it; null if it is not there any more.
  std::shared_ptr<ServedBinding> remove(std::uint64_t id) noexcept;
  /// Releases the stubs of the bindings in called_back_, and settles these. May wait for a hook of the program.
  void let_go_of_stubs() noexcept;
  /// Handles what is on the bell. False: the client has hung up.
  [[nodiscard]] bool hear(const std::shared_ptr<ServedBinding>& binding);
  void on_bell(const std::shared_ptr<ServedBinding>& binding, shim::Watcher::Event event) noexcept;
  void associate_callers(const std::shared_ptr<ServedBinding>& hold, std::span<ServedAStack> astacks,
                         std::size_t& waiting);

  const ServerOptions& options_;
  shim::Watcher& watcher_;
  const shim::Watcher::Task supply_estacks_{[this] { estacks_.supply(); }};
  const shim::Watcher::Task let_go_of_stubs_{[this] { let_go_of_stubs(); }};
  const std::shared_ptr<Accounts> accounts_;
  const std::shared_ptr<Unmapper> unmapper_ = std::make_shared<Unmapper>();
  DomainProcessors processors_;
  PollerTeam pollers_;
  EStackPool estacks_;
  TrapServer traps_;
  SecondaryRegions secondary_;
  std::mutex mutex_;
  OfNumbers bindings_;
  OfNumbers ending_;       ///< Removed from bindings_, and not yet run down.
  OfNumbers called_back_;  ///< Run down, but they still have a callback stub, and so they still count.
  std::condition_variable ended_;
  /// The number of bindings of each client process (client_process_of()), so that an import costs the same however many
  /// there are. Only live ones: the pid of a process that has ended may be reused.
  std::map<pid_t, std::size_t> bindings_of_;
  std::atomic<std::uint64_t> next_id_{0};
  /// Its thread releases callback stubs. It runs from the first binding with callbacks on, until end_all().
  std::optional<shim::Watcher> callbacks_{std::in_place, "lrpc-callback"};
};

}  // namespace lrpc::server
