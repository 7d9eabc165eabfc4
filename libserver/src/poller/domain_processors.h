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

/// The processors of a domain: the affinity that its threads started with, or what was set from outside since (taskset,
/// a cpuset). Read from the clerk's thread, whose affinity this library never changes. Thread-safe.
class DomainProcessors {
 public:
  /// Takes the calling thread's affinity.
  DomainProcessors() noexcept { look_at(0); }
  DomainProcessors(const DomainProcessors&) = delete;
  DomainProcessors& operator=(const DomainProcessors&) = delete;

  /// From now on the calling thread's affinity is the domain's. Only for the clerk's thread, any number of times: the
  /// first call reads the affinity, later ones do what refresh() does.
  void refer_to_this_thread() noexcept;
  [[nodiscard]] bool contains(std::uint16_t processor) const noexcept {
    if (!shim::is_processor(processor)) return false;
    return (mask_[processor / 64].load(std::memory_order_relaxed) >> (processor % 64) & 1) != 0;
  }
  /// Reads the affinity again if it was last read over 10 ms ago: then one system call. `now` in ticks().
  void refresh(std::uint64_t now) noexcept;
  /// Lets the calling thread run on all of them.
  void spread_this_thread() const noexcept {
    (void)keep_this_thread_off([](std::uint16_t) { return false; });
  }
  /// Whether `unwanted(processor)` is false for one of them. Also true if they are not known (the kernel has more than
  /// a cpu_set_t holds). Calls `unwanted` at most once for each.
  template <class Unwanted>
  [[nodiscard]] bool any_but(Unwanted&& unwanted) const noexcept {
    bool found = false;
    const bool known = visit([&](std::uint16_t processor) { return !(found = !unwanted(processor)); });
    return found || !known;
  }
  /// The number of processors for which `counts(processor)` is true.
  template <class Counts>
  [[nodiscard]] std::uint64_t count_if(Counts&& counts) const noexcept {
    std::uint64_t count = 0;
    (void)visit([&](std::uint16_t processor) {
      if (counts(processor)) ++count;
      return true;
    });
    return count;
  }
  /// The next one after `processor` that is not unwanted; after the last follows the first. Perhaps `processor` itself;
  /// if there is none, kNoProcessor.
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
  /// Lets the calling thread run on all of them but the unwanted ones. False: all are unwanted. If the kernel refuses,
  /// or they are not known, the thread runs where it ran, and this is true: placement only affects speed.
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
  /// Calls `go_on` for each of them until it returns false. Returns whether there are any.
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
  std::thread::id referring_;  ///< The thread that reference_ names; only that thread uses this.
  std::atomic<std::uint64_t> looked_{0};
};

}  // namespace lrpc::server
