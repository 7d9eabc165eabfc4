// Where the threads of a server domain may run.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "lrpc/detail/shim/system/processor.h"

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

  /// From now on the calling thread's affinity is the domain's. For one thread, the clerk's, as often as it likes: the
  /// first time it is looked up, later as by refresh().
  void refer_to_this_thread() noexcept;
  [[nodiscard]] bool contains(std::uint16_t processor) const noexcept {
    if (!shim::is_processor(processor)) return false;
    return (mask_[processor / 64].load(std::memory_order_relaxed) >> (processor % 64) & 1) != 0;
  }
  /// Looks again if the last look is over 10 ms old: one system call then. `now` in ticks().
  void refresh(std::uint64_t now) noexcept;
  /// Lets the calling thread run on all of them.
  void spread_this_thread() const noexcept;
  /// Whether one of them is such that `unwanted(processor)` is false, which may be so where it is not known what they
  /// are (the kernel has more than a cpu_set_t holds). At most one look at each.
  template <class Unwanted>
  [[nodiscard]] bool any_but(Unwanted&& unwanted) const noexcept {
    bool found = false;
    const bool known = visit([&](std::uint16_t processor) { return !(found = !unwanted(processor)); });
    return found || !known;
  }
  /// How many of them `counts(processor)` is true for.
  template <class Counts>
  [[nodiscard]] std::uint64_t count_if(Counts&& counts) const noexcept {
    std::uint64_t count = 0;
    (void)visit([&](std::uint16_t processor) {
      if (counts(processor)) ++count;
      return true;
    });
    return count;
  }
  /// The next one after `processor`, the first after the last, that is not unwanted. Perhaps itself; none:
  /// kNoProcessor.
  template <class Unwanted>
  [[nodiscard]] std::uint16_t next_after(std::uint16_t processor, Unwanted&& unwanted) const noexcept {
    std::uint16_t first = shim::kNoProcessor;
    std::uint16_t next = shim::kNoProcessor;
    (void)visit([&](std::uint16_t each) {
      if (unwanted(each)) return true;
      if (first == shim::kNoProcessor) first = each;
      if (each > processor) next = each;
      return next == shim::kNoProcessor;
    });
    return next == shim::kNoProcessor ? first : next;
  }
  /// Lets the calling thread run on all of them but the unwanted ones. False: there are no others. Where the kernel
  /// does not let it, or there is no knowing them, it runs where it ran: placement is a matter of speed.
  template <class Unwanted>
  [[nodiscard]] bool keep_this_thread_off(Unwanted&& unwanted) const noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    const bool known = visit([&](std::uint16_t processor) {
      if (!unwanted(processor)) CPU_SET(processor, &set);
      return true;
    });
    if (CPU_COUNT(&set) == 0) return !known;
    (void)sched_setaffinity(0, sizeof set, &set);
    return true;
  }

 private:
  /// Shows them to `go_on` until that is false. Whether there were any.
  template <class GoOn>
  bool visit(GoOn&& go_on) const noexcept {
    bool any = false;
    for (std::size_t i = 0; i < mask_.size(); ++i) {
      for (std::uint64_t word = mask_[i].load(std::memory_order_relaxed); word != 0; word &= word - 1) {
        any = true;
        if (!go_on(static_cast<std::uint16_t>(i * 64 + static_cast<unsigned>(__builtin_ctzll(word))))) return any;
      }
    }
    return any;
  }
  void look_at(pid_t thread) noexcept;

  std::array<std::atomic<std::uint64_t>, CPU_SETSIZE / 64> mask_{};
  std::atomic<pid_t> reference_{-1};
  std::thread::id referring_;  ///< Whose that is; that thread's own.
  std::atomic<std::uint64_t> looked_{0};
};

}  // namespace lrpc::server
