// A server domain and its callers on the machine of machine.h: the mechanism around the policies, in as few lines as
// show what the policies decide. What it leaves out: many bindings, procedures that block, everything that can fail.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "estacks/estack_policy.h"
#include "lrpc/shim/call/caller_policy.h"
#include "machine.h"
#include "poller/guest_policy.h"
#include "poller/poller_policy.h"

namespace lrpc::simulated {

/// The gates; the fixed ones are what the default is measured by.
enum class Gate : std::uint8_t { adaptive, exchange, handoff, sleep };

/// What callers do between two calls, and what the procedure takes.
struct Pattern {
  std::uint64_t think = 0;
  std::uint64_t sleep = 0;
  std::uint64_t procedure = 0;
  bool polls = false;  ///< Whatever the server says: a client of its own making.
  bool offers = true;  ///< The E-stack yields after calls when its policy says so; else never, to measure that by.
};

struct Calls {
  std::uint64_t count = 0;
  std::uint64_t time = 0;
  std::uint64_t longest = 0;
  [[nodiscard]] double mean_us() const {
    return count == 0 ? 1e9 : static_cast<double>(time) / kPerUs / static_cast<double>(count);
  }
};

/// One A-stack with its caller and its E-stack.
struct AStack {
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
  // The server's.
  Thread* estack = nullptr;
  server::EStackPolicy estack_policy;
  std::uint64_t last_call = 0;
  std::uint16_t called_from = shim::kNoProcessor;
  bool claimed = false;
  bool parked = false;
  bool hot = false;
  std::uint64_t moves = 0;
  std::uint64_t yields = 0;  ///< After calls, for others.
  [[nodiscard]] bool waits_for_server() const { return called != returned && !claimed; }
};

class Domain {
 public:
  /// `processors`: where it may run.
  Domain(Machine& machine, Gate gate, std::uint64_t processors) : machine_(machine), gate_(gate), mask_(processors) {}
  /// A caller, and where it may run.
  AStack& add_caller(const Pattern& pattern, std::uint64_t processors);
  void forget_times() {
    for (const auto& astack : astacks_) astack->calls = {};
  }
  [[nodiscard]] Calls calls() const;
  /// E-stacks' moves and stints of the poller.
  [[nodiscard]] std::uint64_t switches() const;
  [[nodiscard]] const Thread* poller() const { return poller_; }

 private:
  Life call_for_ever(Thread& me, AStack& astack, Pattern pattern);
  Life serve_for_ever(Thread& me, AStack& astack, Pattern pattern);
  Life poll_for_ever(Thread& me, Pattern pattern);
  void wake_estack(Thread& me, AStack& astack);
  void finish(Thread& me, AStack& astack);
  void note_caller(AStack& astack);
  void say_polled(shim::PolledHint hint);
  void say_polled_at(std::uint16_t seat);
  [[nodiscard]] bool may_poll() const { return gate_ == Gate::adaptive || gate_ == Gate::exchange; }
  [[nodiscard]] std::uint64_t seats() const;
  [[nodiscard]] std::uint64_t taken() const { return mask_ & ~seats(); }
  [[nodiscard]] bool may_be_guest() const {
    return std::popcount(mask_) > 1 && guest_policy_.may_begin(machine_.moment());
  }
  [[nodiscard]] std::uint16_t next_host(std::uint16_t host) const;

  static constexpr std::uint64_t kWindow = us(200);

  Machine& machine_;
  const Gate gate_;
  const std::uint64_t mask_;
  std::vector<std::unique_ptr<AStack>> astacks_;
  Thread* poller_ = nullptr;
  server::PollerPolicy poller_policy_;
  server::GuestPolicy guest_policy_;
  server::CallerProcessors callers_;
  std::uint64_t not_before_ = 0;
  std::uint64_t stints_ = 0;
  std::uint64_t hits_ = 0;
  bool offered_ = false;
  bool guest_ = false;  ///< The poller.
};

/// Computes for ever. What it has got done is its thread's ran().
Life hog(Thread& me);
/// Wakes up each `period`, computes for `work`; how late it is done is written down.
Life third_party(Thread& me, Machine& machine, std::uint64_t period, std::uint64_t work, Calls& done);

}  // namespace lrpc::simulated
