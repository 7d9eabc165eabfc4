// E-stacks: the server's execution stacks, associated with A-stacks on their first call (LRPC §3.2).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "call/primed_context.h"
#include "call/served_binding.h"
#include "estack_policy.h"
#include "estack_shares.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/system/thread.h"
#include "poller/domain_processors.h"

namespace lrpc::server {

class PollerTeam;
class EStackPool;

/// One execution stack: a thread with its guard page. Its members belong to the thread, except the atomics and what the
/// pool's lock guards.
class EStack {
 public:
  EStack(EStackPool& pool, PollerTeam& pollers) noexcept : pool_(pool), pollers_(pollers) {}
  /// The thread: serves one A-stack after another until the pool has no more use for it.
  void run();

 private:
  friend class EStackPool;
  void serve_astack();
  [[nodiscard]] bool may_be_wanted() const;
  void park(std::uint64_t unused) noexcept;
  [[nodiscard]] bool left_to_poller() noexcept;
  [[nodiscard]] bool served_one();
  [[nodiscard]] bool hand_over_and_look();
  void after_call();
  [[nodiscard]] bool exchanges() const noexcept;
  [[nodiscard]] bool poller_is_here() const noexcept;
  void sit_with_caller(shim::Moment now);
  void leave_processor(shim::Moment now);
  void say_attached() noexcept;
  void detach();

  EStackPool& pool_;
  PollerTeam& pollers_;
  std::atomic<bool> leave_{false};           ///< Set by the pool: detach from the A-stack.
  std::atomic<bool> at_rest_{false};         ///< It executes nothing, and checks is_wanted() before it sleeps.
  std::atomic<std::uint64_t> last_used_{0};  ///< ticks() of the last call served.
  PrimedContext context_;
  EStackPolicy policy_;
  bool spent_ = false;  ///< Its scheduling was changed for good: the thread ends with this A-stack.

  // Under the pool's lock.
  std::shared_ptr<ServedBinding> binding_;
  ServedAStack* astack_ = nullptr;
  bool leaves_amid_calls_ = false;
  std::condition_variable assigned_;
  const std::atomic<bool>* own_user_waits_ = nullptr;  ///< Of EStackShares::take(); valid while it is associated.
  shim::Thread thread_;
};

/// All E-stacks of a server domain. Thread-safe; its lock is never taken on the call path of an A-stack that has its
/// E-stack.
class EStackPool {
 public:
  /// The references must outlive it. `ask_clerk(ms)` makes the clerk's thread call supply() after that time, because
  /// new E-stacks inherit that thread's scheduling. It is called on any thread, under the pool's lock, and must not
  /// fail.
  EStackPool(const ServerOptions& options, DomainProcessors& processors, PollerTeam& pollers,
             std::function<void(std::uint32_t)> ask_clerk);
  EStackPool(const EStackPool&) = delete;
  EStackPool& operator=(const EStackPool&) = delete;
  ~EStackPool() { stop(); }

  /// Associates an E-stack with the A-stack if it has none: an unassociated one, else a new one, else the one unused
  /// for longest, else the next that becomes free; among users by their shares (estack_shares.h). Never waits for a
  /// running procedure.
  ///
  /// Call it for each A-stack with a call that one look at a binding finds; then, if calls wait, call reclaim() once.
  /// False: the call waits. `other_waits`: another call of this look waits already, so no new E-stack is tried.
  [[nodiscard]] bool associate(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack, bool other_waits);
  /// The same before there is a call, but only if an E-stack is idle, no call waits, and the user has less than its
  /// share.
  void stand_by(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) noexcept;
  /// After one look at a binding that left `calls` of its calls without an E-stack: makes up to as many E-stacks leave
  /// A-stacks on which they execute nothing, as far as the holder may take them.
  void reclaim(Holder holder, std::size_t calls);
  /// admit() before the binding's first call, dismiss() after its revocation. admit() throws std::bad_alloc.
  void admit(const ServedBinding& binding) {
    std::lock_guard lock(mutex_);
    shares_.admit(binding.holder());
  }
  /// The binding was revoked: its calls wait for E-stacks no longer.
  void dismiss(ServedBinding& binding) noexcept;
  /// Makes E-stacks leave these A-stacks as soon as they do not execute a call; no other one comes, unless associate()
  /// is called again.
  void let_go(std::span<ServedAStack> astacks);
  /// Gives E-stacks to the calls that wait, new ones as far as there is room. On the clerk's thread.
  void supply();
  /// Waits until every E-stack has returned from its procedure and its thread has ended. Every binding must have been
  /// revoked before.
  void stop();
  /// Whether the calling thread is one of the E-stacks.
  [[nodiscard]] bool runs_here() const;

  /// How often all E-stacks have been searched for those that may leave.
  [[nodiscard]] std::uint64_t searches() const {
    std::lock_guard lock(mutex_);
    return searches_;
  }
  void count(ServerStatistics& counted) const;

 private:
  friend class EStack;
  /// An E-stack that may leave its A-stack for a call that waits.
  struct Spare {
    bool of_many = false;  ///< Its holder has more than its share.
    std::uint64_t last_used = 0;
    EStack* estack = nullptr;
  };
  void assign_locked(EStack& estack, const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack);
  void assign_idle_locked(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack);
  [[nodiscard]] bool start_locked();
  [[nodiscard]] std::optional<WaitingCall> take_waiting_locked();
  /// Makes at most `most` E-stacks leave, in one search.
  void reclaim_locked(Holder holder, std::size_t most);
  /// A user that is refused (estack_shares.h) may need several to leave before it gets one: makes the next one leave.
  void reclaim_for_refused_locked();
  void dismiss_locked(EStack& estack, ServedAStack& astack) noexcept;
  /// Whether an E-stack without a call is to leave its A-stack for a call that waits.
  [[nodiscard]] bool is_wanted(const EStack& estack);
  /// The same for one whose caller calls without a pause. It takes a waiting call only after a last look, in which it
  /// may execute one more procedure. Meanwhile no more of them leave than calls wait.
  [[nodiscard]] bool leaves_amid_calls(EStack& estack);
  void supply_locked();
  /// For the E-stack's thread: the next A-stack to serve; false: end.
  [[nodiscard]] bool next_assignment(EStack& estack);

  const ServerOptions options_;
  PollerTeam& pollers_;
  DomainProcessors& processors_;
  const std::function<void(std::uint32_t)> ask_clerk_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::list<std::unique_ptr<EStack>> estacks_;
  std::size_t leaving_amid_calls_ = 0;
  shim::Thread last_to_end_;   ///< To be joined by the next that ends, or by stop().
  std::vector<EStack*> idle_;  ///< Unassociated, most recently used last. Has room for all.
  std::vector<Spare> spare_;   ///< Of one search. Has room for all.
  EStackShares shares_;        ///< Counts those that are associated, and queues the calls that wait for one.
  std::atomic<std::uint64_t> poller_misses_{0};
  std::atomic<std::uint64_t> released_{0};
  std::atomic<std::uint64_t> moves_{0};
  std::uint64_t associated_ = 0;
  std::uint64_t reclaimed_ = 0;
  std::uint64_t searches_ = 0;
  bool stop_ = false;
};

}  // namespace lrpc::server
