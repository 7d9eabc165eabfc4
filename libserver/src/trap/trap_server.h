// The trap gate, the server's side: one thread for each sealed client domain, on which its calls are served.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "call/primed_context.h"
#include "call/served_binding.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/thread.h"
#include "lrpc/detail/shim/trap/trap.h"
#include "quota/accounts.h"

namespace lrpc::server {

/// All trap listeners of a server domain. Thread-safe.
///
/// A sealed domain has one thread, so one thread here serves all its A-stacks: like an E-stack, but it sleeps in
/// poll(2) and not on a word that the client maps. It ends with its binding.
class TrapServer {
 public:
  /// Of a listener: the seccomp listener, and the eventfd that wakes its thread. Room for them is checked when its
  /// client binds, room for the thread when the listener comes.
  static constexpr Holding kDescriptors{.descriptors = 2};
  static constexpr Holding kThread{.sealed_clients = 1};

  TrapServer(const ServerOptions& options, std::shared_ptr<Accounts> accounts)
      : options_(options), accounts_(std::move(accounts)) {}
  TrapServer(const TrapServer&) = delete;
  TrapServer& operator=(const TrapServer&) = delete;
  ~TrapServer() { stop(); }

  /// Takes what came on the bell of a binding. Closes it and returns an error if it is no listener, if the binding has
  /// one already or was imported for another gate, if its user has too many descriptors, or if its user or all users
  /// together have as many listeners as they may have E-stacks. A listener counts until its thread has ended.
  Status adopt(const std::shared_ptr<ServedBinding>& binding, UniqueFd offered);
  /// The binding was revoked: its listener closes, after the procedure that may be running. Does not wait.
  void end(const ServedBinding& binding) noexcept;
  /// Waits until running procedures have returned and their threads have ended. Every binding must have been revoked
  /// before.
  void stop();
  /// Whether the calling thread is one of these.
  [[nodiscard]] bool runs_here() const;

  void count(ServerStatistics& counted) const;

 private:
  /// What the thread does. `receiving` may last for ever if the client has kept its listener and receives the trap
  /// itself. Nobody waits for such a thread: it is abandoned, and touches nothing any more.
  enum class State : std::uint8_t { serving, receiving, abandoned };
  struct Listener {
    Listener(TrapServer& owner, std::shared_ptr<ServedBinding> served, shim::TrapListener taken, UniqueFd woken,
             Share counted, Share held) noexcept
        : server(owner),
          share(std::move(counted)),
          descriptors(std::move(held)),
          binding(std::move(served)),
          traps(std::move(taken)),
          wake(std::move(woken)) {}
    void tell_to_end() noexcept {
      ending.store(true, std::memory_order_seq_cst);
      (void)eventfd_write(wake.get(), 1);
    }
    TrapServer& server;
    Share share;  ///< Until the thread has ended, which may outlive the server.
    const Share descriptors;
    std::shared_ptr<ServedBinding> binding;
    shim::TrapListener traps;
    UniqueFd wake;  ///< An eventfd: the thread is to end.
    std::atomic<State> state{State::serving};
    std::atomic<bool> ending{false};  ///< Set with `wake`: the thread must not begin to receive.
    shim::Thread thread;
    PrimedContext context;
  };

  /// Listeners that are released after the lock, and their bindings with them: their threads may go on for long.
  struct Abandoned {
    std::list<std::shared_ptr<Listener>> listeners;
    ~Abandoned() {
      for (const auto& listener : listeners) listener->binding.reset();
    }
  };

  static void* thread_main(void* listener);
  void abandon_locked(const ServedBinding* of, Abandoned& abandoned) noexcept;
  void run(const std::shared_ptr<Listener>& listener);
  [[nodiscard]] static bool receive(Listener& listener, shim::Trap& trap) noexcept;
  [[nodiscard]] static int serve_trap(Listener& listener, const shim::Trap& trap) noexcept;

  const ServerOptions& options_;
  const std::shared_ptr<Accounts> accounts_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::list<std::shared_ptr<Listener>> listeners_;
  shim::Thread last_to_end_;  ///< To be joined by the next that ends, or by stop().
  std::atomic<std::uint64_t> refused_{0};
  bool stop_ = false;
};

}  // namespace lrpc::server
