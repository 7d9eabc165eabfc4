// Runs the processor allocator: shares pages with servers, ticks, and sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "allocator.h"
#include "loop/event_loop.h"
#include "lrpc/detail/shim/binder/allocator_page.h"
#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// Shares a page with each server. While any server is active, reads the counters once a tick and writes rulings. If
/// none is, it marks the pages as asleep and stops ticking; the first server with calls to poll for wakes it. On the
/// event loop's thread.
class AllocatorDriver {
 public:
  /// `always`: NameserverOptions::allocator_rules_always.
  AllocatorDriver(EventLoop& loop, std::chrono::milliseconds tick, bool always, MachineLoadSource load);
  ~AllocatorDriver() { loop_.cancel(timer_); }

  /// Makes a page for the server of that connection, maps it, and returns the descriptor to send to the server.
  Result<UniqueFd> add(Allocator::DomainId id, const shim::Credentials& server);
  void remove(Allocator::DomainId id);
  [[nodiscard]] bool has(Allocator::DomainId id) const { return servers_.contains(id); }
  /// Call it when a server has calls to poll for.
  void wake();

  /// Any thread.
  [[nodiscard]] AllocatorStatistics statistics() const;

 private:
  struct Server {
    shim::AllocatorPageMapping page;
    std::optional<clockid_t> clock;  ///< Of its process's processor time.
  };

  /// Sets the timer; there is at most one. Its caller's last step that may throw: after a throw the caller's timer
  /// fires again.
  void schedule();
  void tick();
  void fall_asleep(const std::vector<Allocator::Look>& seen);
  void rule();
  [[nodiscard]] std::vector<Allocator::Look> look() const;

  EventLoop& loop_;
  const std::chrono::milliseconds tick_;
  const bool always_;
  const MachineLoadSource load_;
  EventLoop::TimerId timer_;
  Allocator policy_;
  std::map<Allocator::DomainId, std::unique_ptr<Server>> servers_;
  std::uint32_t epoch_ = 0;
  // What statistics() reads from other threads.
  std::atomic<bool> asleep_{true};
  std::atomic<std::uint64_t> ticks_{0};
  std::atomic<std::uint32_t> granted_{0};
  std::atomic<std::uint32_t> pages_{0};
};

}  // namespace lrpc::nameserver
