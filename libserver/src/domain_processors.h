// Where the threads of a server domain may run.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace lrpc::server {

/// The processors of a domain: the affinity that its threads were born with, or what has been made of it from outside
/// since (taskset, a cpuset). Told by the affinity of the clerk's thread, which nobody of this library ever moves.
/// Thread-safe.
class DomainProcessors {
 public:
  /// Takes the calling thread's affinity.
  DomainProcessors() noexcept { look_at(0); }
  DomainProcessors(const DomainProcessors&) = delete;
  DomainProcessors& operator=(const DomainProcessors&) = delete;

  /// From now on the calling thread's affinity is the domain's.
  void refer_to_this_thread() noexcept;
  [[nodiscard]] bool contains(std::uint16_t processor) const noexcept {
    if (processor >= CPU_SETSIZE) return false;
    return (mask_[processor / 64].load(std::memory_order_relaxed) >> (processor % 64) & 1) != 0;
  }
  [[nodiscard]] unsigned count() const noexcept { return count_.load(std::memory_order_relaxed); }
  /// Looks again if the last look is over 10 ms old: one system call then. `now` in ticks().
  void refresh(std::uint64_t now) noexcept;
  /// Lets the calling thread run on all of them.
  void spread_this_thread() const noexcept;

 private:
  void look_at(pid_t thread) noexcept;

  std::array<std::atomic<std::uint64_t>, CPU_SETSIZE / 64> mask_{};
  std::atomic<unsigned> count_{1};
  std::atomic<pid_t> reference_{-1};
  std::atomic<std::uint64_t> looked_{0};
};

}  // namespace lrpc::server
