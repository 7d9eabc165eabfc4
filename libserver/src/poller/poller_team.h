// The pollers of a domain: one, and more while one has more calls than it can serve (LRPC §3.4).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "call/served_binding.h"
#include "domain_processors.h"
#include "lrpc/detail/server/server.h"
#include "poller.h"
#include "poller_grant.h"
#include "poller_load.h"
#include "poller_policy.h"

namespace lrpc::server {

/// Distributes the A-stacks among the pollers. A poller whose callers queue gives those of every second caller to one
/// that does not poll, if there is a processor without callers and pollers for it. A poller other than the first, with
/// next to nothing to do, gives all it has to one that has room. An A-stack whose calls come again after a pause goes
/// to the poller that it had.
///
/// Thread-safe.
class PollerTeam {
 public:
  static constexpr unsigned kMost = 8;

  /// The references must outlive it.
  PollerTeam(const ServerOptions& options, DomainProcessors& processors, PollerGrant& grant);
  PollerTeam(const PollerTeam&) = delete;
  PollerTeam& operator=(const PollerTeam&) = delete;
  ~PollerTeam() { stop(); }  // all, before one is destroyed: they use each other

  /// Promotes an A-stack into a hot set and wakes its poller, unless there is no room. Ask wants_offer() first.
  /// Called by the E-stack that has just served a call on it.
  void offer(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack);
  /// Whether an offer could be taken now: a poller polls or could, and this A-stack is not backing off. Also true while
  /// the allocator grants no pollers: it learns of hot calls only by offer(), and grants none without them. For the
  /// call path of an E-stack: a few looks at each processor at most.
  [[nodiscard]] bool wants_offer(const ServedAStack& astack, shim::Moment now) const noexcept {
    if (now.before(astack.not_before.load(std::memory_order_relaxed)) || pollers_.empty()) return false;
    return grant_.most() == 0 || poller_of(astack, now) != nullptr;
  }
  /// A call on `astack` has come from `processor`. Any thread.
  void called_from(ServedAStack& astack, std::uint16_t processor, shim::Moment now) noexcept {
    callers_.called_from(&astack, processor, astack.caller.exchange(processor, std::memory_order_relaxed), now);
  }
  /// Stops all pollers. Afterwards none of their threads runs.
  void stop() {
    for (const auto& poller : pollers_) poller->stop();
  }
  /// Whether the calling thread is one of them.
  [[nodiscard]] bool runs_here() const {
    return std::ranges::any_of(pollers_, [](const auto& poller) { return poller->runs_here(); });
  }

  [[nodiscard]] PollerGrant& grant() noexcept { return grant_; }
  void count(ServerStatistics& counted) const noexcept {
    for (const auto& poller : pollers_) poller->count(counted);
  }

  // For pollers.
  [[nodiscard]] bool caller_on(std::uint16_t processor, shim::Moment now) const noexcept {
    return callers_.on(processor, now);
  }
  /// The number of processors that callers run on.
  [[nodiscard]] std::uint64_t callers_sit_on(shim::Moment now) const noexcept {
    return processors_.count_if([&](std::uint16_t processor) { return callers_.on(processor, now); });
  }
  /// Whether a poller other than `asks` is there.
  [[nodiscard]] bool poller_on(std::uint16_t processor, const Poller* asks) const noexcept {
    return std::ranges::any_of(pollers_,
                               [&](const auto& poller) { return poller.get() != asks && poller->seat() == processor; });
  }
  /// Whether a caller or a poller other than `asks` is there.
  [[nodiscard]] bool taken(std::uint16_t processor, const Poller* asks, shim::Moment now) const noexcept {
    return callers_.on(processor, now) || poller_on(processor, asks);
  }
  /// Whether a poller other than `asks` polls.
  [[nodiscard]] bool others_poll(const Poller* asks) const noexcept {
    return std::ranges::any_of(pollers_, [&](const auto& poller) { return poller.get() != asks && poller->polls(); });
  }
  /// Whether a poller with a smaller index is there, too: then the processor is that one's.
  [[nodiscard]] bool another_sits_on(std::uint16_t processor, std::size_t index) const noexcept {
    for (std::size_t i = 0; i < index; ++i) {
      if (pollers_[i]->seat() == processor) return true;
    }
    return false;
  }
  /// One that does not poll and could; null if there is none, or no processor for it.
  [[nodiscard]] Poller* helper_for(const Poller& poller, shim::Moment now) const noexcept;
  /// A poller other than the first has ended after `lasted_us`: it was switched out, found no processor, or gave all
  /// its A-stacks away. Not for one that ends because no calls come.
  void helper_ended(std::uint64_t lasted_us, shim::Moment now) noexcept { back_off_.ended(lasted_us, now); }
  /// A poller that polls and has room for what `poller` serves; until it looks again, for nobody else. Null: none.
  [[nodiscard]] Poller* room_beside(const Poller& poller) const noexcept;
  /// Whether the poller with this index may poll, as far as the allocator rules.
  [[nodiscard]] bool may_poll(std::size_t index) const noexcept { return index < grant_.most(); }

 private:
  [[nodiscard]] Poller* poller_of(const ServedAStack& astack, shim::Moment now) const noexcept;
  [[nodiscard]] bool may_begin(const Poller& poller, shim::Moment now) const noexcept;

  PollerGrant& grant_;
  DomainProcessors& processors_;
  CallerProcessors callers_;
  StintBackOff back_off_;
  std::vector<std::unique_ptr<Poller>> pollers_;  ///< As many as there may be, in the order of their indices.
};

}  // namespace lrpc::server
