// A server domain and its callers on the machine of machine.h: only as much mechanism around the policies as is needed
// to show what the policies decide. Left out: many bindings, further pollers, everything that can fail.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "estacks/estack_policy.h"
#include "history.h"
#include "lrpc/detail/shim/call/caller_policy.h"
#include "lrpcd.h"
#include "machine.h"
#include "poller/guest_policy.h"
#include "poller/poller_policy.h"

namespace lrpc::simulated {

/// The gates. The fixed ones are what the default (adaptive) is compared with.
enum class Gate : std::uint8_t { adaptive, exchange, handoff, sleep };

/// What callers do between two calls, and how long the procedure takes.
struct Pattern {
  std::uint64_t think = 0;
  std::uint64_t sleep = 0;
  std::uint64_t procedure = 0;
  std::uint64_t slow = 0;  ///< If slow_every is not 0: the time of each slow_every-th call.
  unsigned slow_every = 0;
  bool varies = false;    ///< Thinks and sleeps for half to one and a half of these times, at random.
  bool realtime = false;  ///< The caller's policy is SCHED_FIFO.
  bool polls = false;     ///< Polls whatever the server's hints say, as a client of somebody else's might.
  bool offers = true;     ///< The E-stack yields after calls when its policy says so. False, for comparison: never.
  [[nodiscard]] std::uint64_t takes(std::uint64_t call) const noexcept {
    return slow_every != 0 && call % slow_every == 0 ? slow : procedure;
  }
};

/// One A-stack with its caller and its E-stack.
struct AStack {
  explicit AStack(const Pattern& of, std::uint64_t now) : pattern(of), history(now) {}
  const Pattern pattern;
  // The slot.
  std::uint64_t called = 0;  ///< Generations.
  std::uint64_t returned = 0;
  bool caller_yields = false;
  bool caller_sleeps = false;
  std::uint16_t caller_processor = 0;
  shim::PolledHint polled;
  shim::EStackHint attached = shim::EStackHint::anywhere();
  // The client's.
  Thread* caller = nullptr;
  shim::CallerPolicy policy;
  Calls calls;
  History history;
  std::uint64_t calls_since = 0;  ///< When the current call began; 0: there is none.
  // The server's.
  Thread* estack = nullptr;
  server::EStackPolicy estack_policy;
  std::uint64_t last_call = 0;
  std::uint16_t called_from = shim::kNoProcessor;
  bool claimed = false;
  bool parked = false;
  bool hot = false;
  unsigned slow = 0;             ///< Slow calls in succession.
  std::uint64_t not_before = 0;  ///< Only its E-stack serves the A-stack until then.
  std::uint64_t last_hit = 0;
  std::uint64_t moves = 0;
  std::uint64_t yields = 0;  ///< After calls, to other threads.
  [[nodiscard]] bool waits_for_server() const { return called != returned && !claimed; }
};

class Domain {
 public:
  /// The groups in which server and callers can be stopped, and the allocator that rules.
  struct Surroundings {
    Group* server = nullptr;
    Group* clients = nullptr;
    Lrpcd* lrpcd = nullptr;
  };
  /// `processors`: a mask of those on which it may run.
  Domain(Machine& machine, Gate gate, std::uint64_t processors) : Domain(machine, gate, processors, {}) {}
  Domain(Machine& machine, Gate gate, std::uint64_t processors, Surroundings surroundings);
  Domain(const Domain&) = delete;
  /// Adds a caller, and the mask of processors on which it may run.
  AStack& add_caller(const Pattern& pattern, std::uint64_t processors);
  void forget_times() {
    for (const auto& astack : astacks_) astack->calls = {};
  }
  [[nodiscard]] Calls calls() const;
  [[nodiscard]] const std::vector<std::unique_ptr<AStack>>& astacks() const { return astacks_; }
  /// Moves of E-stacks and stints of the poller.
  [[nodiscard]] std::uint64_t switches() const;
  [[nodiscard]] const Thread* poller() const { return poller_; }
  /// Like taskset(1) on all of its threads, or on its callers'. The domain notices it later.
  void confine_server(std::uint64_t processors);
  void confine_callers(std::uint64_t processors);

 private:
  Life call_for_ever(Thread& me, AStack& astack, std::uint64_t seed);
  Life serve_for_ever(Thread& me, AStack& astack);
  Life poll_for_ever(Thread& me);
  void after_call(Thread& me, AStack& astack);
  void wake_estack(Thread& me, AStack& astack);
  void finish(Thread& me, AStack& astack);
  void note_caller(AStack& astack);
  void refresh();
  void say_polled_at(std::uint16_t seat);
  [[nodiscard]] bool takes_offers() const { return machine_.now() >= not_before_; }
  [[nodiscard]] bool wants_offer(const AStack& astack) const;
  void note_gap(const Thread& me, std::uint64_t looked);
  void count_anew(const Thread& me);
  [[nodiscard]] bool too_slow(const Thread& me, AStack& astack, std::uint64_t took);
  void drop(AStack& astack);
  void drop_cold();
  void end_stint();
  void cool_down(Thread& me);
  [[nodiscard]] bool may_poll() const { return gate_ == Gate::adaptive || gate_ == Gate::exchange; }
  [[nodiscard]] bool may_yield() const { return gate_ == Gate::adaptive || gate_ == Gate::handoff; }
  [[nodiscard]] std::uint64_t seats() const;
  [[nodiscard]] std::uint64_t taken() const { return mask_ & ~seats(); }
  [[nodiscard]] bool may_be_guest() const {
    return std::popcount(mask_) > 1 && guest_policy_.may_begin(machine_.moment());
  }
  [[nodiscard]] std::uint16_t next_host(std::uint16_t host) const;

  static constexpr std::uint64_t kWindow = us(200);

  Machine& machine_;
  const Gate gate_;
  const Surroundings surroundings_;
  Grant grant_;
  std::uint64_t allowed_;     ///< A mask: where the kernel lets it run.
  std::uint64_t mask_;        ///< That mask, as the domain last saw it.
  std::uint64_t looked_ = 0;  ///< When it last looked.
  std::vector<std::unique_ptr<AStack>> astacks_;
  Thread* poller_ = nullptr;
  server::PollerPolicy poller_policy_;
  server::GuestPolicy guest_policy_;
  server::CallerProcessors callers_;
  std::uint64_t not_before_ = 0;
  std::uint64_t stints_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t told_hits_ = 0;
  bool offered_ = false;
  // The poller's.
  bool polls_ = false;
  bool guest_ = false;
  bool has_to_pay_ = false;
  std::uint64_t counted_ = 0;  ///< When its processor time was counted_ran_.
  std::uint64_t counted_ran_ = 0;
  std::uint64_t slow_looked_ = 0;  ///< Thread::involuntary() when a call last seemed slow.
};

/// Computes for ever. How much it has computed is its thread's ran().
Life hog(Thread& me);
/// Wakes up each `period` and computes for `work`. Records in `done` how late it finishes.
Life third_party(Thread& me, Machine& machine, std::uint64_t period, std::uint64_t work, Calls& done);
/// A job of a build: computes for 1 to 30 ms, then waits up to 3 ms for its disk, again and again.
Life build(Thread& me, std::uint64_t seed);

}  // namespace lrpc::simulated
