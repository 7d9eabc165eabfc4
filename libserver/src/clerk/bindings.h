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

/// Thread-safe. Bindings are made by the clerk and over private sockets, on the watcher's thread, and end there too,
/// unless the server ends them.
class Bindings {
 public:
  /// The references must outlive it; the watcher may be constructed later.
  Bindings(const ServerOptions& options, PollerGrant& grant, shim::Watcher& watcher);
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  /// For one more binding to an interface, by this gate: limit_reached if the server, this client or its user (all
  /// callers of other hosts are one) has as much as it may have. On the watcher's thread.
  [[nodiscard]] Status room_for(const shim::Credentials& client, const ServedInterface& interface, shim::Gate gate);
  /// On the watcher's thread: watches the binding's bell and its client. The binding is alive when it returns ok.
  /// Throws std::bad_alloc; then there is none.
  Status add(ServedParts parts);
  /// On the watcher's thread, once the client has its answer: has an idle E-stack, if any, stand by for its first call.
  void expect_call(std::uint64_t id) noexcept;
  /// The client is gone or has let go, or the server ends it: revokes, runs down the handles, and tells the server (on
  /// the watcher's thread, later if this is another). Any thread.
  void end(std::uint64_t id) noexcept;
  /// Where another thread is ending it: until the handles have been run down. Not while this thread runs down a binding
  /// itself, for the other may wait for that.
  void wait_until_ended(std::uint64_t id) noexcept;
  /// The server ends: waits for running procedures, for end() on other threads, and for running hooks of callback stubs
  /// that only this holds, which may call end() meanwhile; nobody is told. Nothing may be added any more.
  void end_all();
  /// The same on a thread of the server's own (runs_here()), which cannot wait for itself: waits for nobody. What
  /// bindings hold stays, and so must this.
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
  /// A binding that find() finds and that is counted. Throws std::bad_alloc.
  std::shared_ptr<ServedBinding> make(ServedParts parts);
  void forget_if_none_locked(pid_t process) noexcept;
  Status watch(const std::shared_ptr<ServedBinding>& binding);
  /// Takes the binding out and ends it; null if that has been done.
  std::shared_ptr<ServedBinding> remove(std::uint64_t id) noexcept;
  void settle(const std::shared_ptr<ServedBinding>& binding) noexcept;
  /// Lets go of the stubs of those in called_back_, which then count no longer. May wait for a hook of the program.
  void let_go_of_stubs() noexcept;
  /// False: it has ended.
  [[nodiscard]] bool hear(const std::shared_ptr<ServedBinding>& binding);
  void on_bell(const std::shared_ptr<ServedBinding>& binding, shim::Watcher::Event event) noexcept;
  void associate_callers(const std::shared_ptr<ServedBinding>& hold, std::span<ServedAStack> astacks,
                         std::size_t& waiting);

  const ServerOptions& options_;
  shim::Watcher& watcher_;
  const shim::Watcher::Task supply_estacks_{[this] { estacks_.supply(); }};
  const shim::Watcher::Task let_go_of_stubs_{[this] { let_go_of_stubs(); }};
  const std::shared_ptr<Accounts> accounts_;
  DomainProcessors processors_;
  PollerTeam pollers_;
  EStackPool estacks_;
  TrapServer traps_;
  SecondaryRegions secondary_;
  std::mutex mutex_;
  OfNumbers bindings_;
  OfNumbers ending_;       ///< Taken out of them, and not yet run down.
  OfNumbers called_back_;  ///< Run down, but with a callback stub, and so they still count.
  std::condition_variable ended_;
  /// By client process: so that an import costs the same however many there are. Only those that are alive: a number
  /// of a process that has ended may be another's.
  std::map<pid_t, std::size_t> bindings_of_;
  std::atomic<std::uint64_t> next_id_{0};
  /// Its thread lets go of callback stubs. It runs from the first binding with callbacks on, until end_all().
  std::optional<shim::Watcher> callbacks_{std::in_place, "lrpc-callback"};
};

}  // namespace lrpc::server
