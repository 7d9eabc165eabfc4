// lrpcd's processor allocator on the simulated machine: its policy, and what AllocatorDriver does around it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "allocator/allocator.h"
#include "machine.h"

namespace lrpc::simulated {

/// The page that a server and the allocator share (allocator_page.h), and the server's side of it (PollerGrant).
struct Grant {
  static constexpr std::uint32_t kNoRuling = std::numeric_limits<std::uint32_t>::max();
  shim::CountersCopy counters;
  std::uint32_t most = kNoRuling;  ///< The most pollers that it may have.
  bool asleep = true;              ///< Whether the allocator sleeps.
  std::function<void()> wake;
  std::function<std::uint64_t()> processor_time;  ///< Of the server.

  /// Whether a poller may take the A-stack.
  bool hot_call() {
    ++counters.hot_calls;
    if (asleep && wake) wake();
    if (most != 0) return true;
    counters.wants_poller = true;
    return false;
  }
  void tell_hits(std::uint64_t hits) {
    counters.hits += hits;
    if (asleep && wake) wake();
  }
};

class Lrpcd {
 public:
  /// As in NameserverOptions.
  static constexpr std::uint64_t kTick = us(50'000);

  Lrpcd(Machine& machine, bool always) : machine_(machine), always_(always) {}
  /// `grant` must outlive this object.
  void add(Grant& grant);

 private:
  void wake();
  void tick();
  [[nodiscard]] std::vector<nameserver::Allocator::Look> looks() const;

  Machine& machine_;
  const bool always_;
  nameserver::Allocator allocator_;
  std::vector<Grant*> grants_;
  std::uint64_t used_ = 0;  ///< The machine's processor time at the last tick.
  bool asleep_ = true;
};

}  // namespace lrpc::simulated
