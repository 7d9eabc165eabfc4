// A machine of processors, run queues and time slices, for policies to run on: no clock and no thread of the real one.
// Its host can take processors away, and its administrator can stop, confine and limit what runs on it.
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/call/distrust.h"

namespace lrpc::simulated {

/// The machine's unit of time is half a microsecond.
inline constexpr std::uint64_t kPerUs = 2;
constexpr std::uint64_t us(std::uint64_t count) { return count * kPerUs; }

inline constexpr std::uint64_t kForEver = ~std::uint64_t{0};

class Machine;
class Thread;

/// Threads that the kernel stops together: a process that is stopped, or a control group that has used its quota up.
class Group {
 public:
  /// Processor time in each period; 0: as much as there is.
  explicit Group(std::uint64_t quota = 0, std::uint64_t period = us(100'000)) noexcept
      : quota_(quota), period_(period) {}
  [[nodiscard]] bool stopped(std::uint64_t now) const noexcept { return now < stopped_until_; }

 private:
  friend class Machine;
  void used(std::uint64_t time, std::uint64_t now) noexcept;
  /// What all of its threads together can certainly use before it stops.
  [[nodiscard]] std::uint64_t left(std::uint64_t now) const noexcept;

  const std::uint64_t quota_;
  const std::uint64_t period_;
  std::uint64_t used_ = 0;
  std::uint64_t this_period_ = 0;
  std::uint64_t stopped_until_ = 0;
};

/// What a thread does: a coroutine that says co_await to whatever takes time.
class Life {
 public:
  struct promise_type {
    Life get_return_object() { return Life(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() { throw; }
  };
  Life(Life&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Life& operator=(Life&&) = delete;
  ~Life() {
    if (handle_) handle_.destroy();
  }
  void resume() { handle_.resume(); }

 private:
  explicit Life(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

class Thread {
 public:
  struct Kind {
    Group* group = nullptr;
    bool realtime = false;  ///< SCHED_FIFO: before all others, without time slices.
  };
  Thread(Machine& machine, std::uint64_t mask, unsigned processor, Kind kind) noexcept
      : machine_(machine), kind_(kind), mask_(mask), processor_(processor) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  struct [[nodiscard]] Pause {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    void await_resume() const noexcept {}
  };
  /// So much processor time of its own.
  Pause work(std::uint64_t time) noexcept {
    left_ = time;
    return {};
  }
  Pause yield() noexcept {
    wants_ = Wants::yield;
    return {};
  }
  /// Off the processor for so long.
  Pause sleep(std::uint64_t time) noexcept;
  /// Off the processor until somebody wakes it; not at all if somebody has done so since it last waited.
  Pause wait() noexcept;
  /// The same for so long at most.
  Pause wait_for(std::uint64_t time) noexcept;
  /// Runs on these processors only, from now on. Without effect if all of them are offline.
  Pause keep_to(std::uint64_t mask) noexcept;
  [[nodiscard]] std::uint16_t processor() const noexcept { return static_cast<std::uint16_t>(processor_); }
  /// Processor time, by the thread's clock. That counts a frozen processor's time, too, if there is no steal clock.
  [[nodiscard]] std::uint64_t ran() const noexcept { return ran_; }
  [[nodiscard]] bool realtime() const noexcept { return kind_.realtime; }
  /// How often it was switched out although it could have gone on.
  [[nodiscard]] std::uint64_t involuntary() const noexcept { return involuntary_; }
  /// The longest that it has waited for a processor while others ran.
  [[nodiscard]] std::uint64_t longest_wait() const noexcept { return longest_wait_; }

 private:
  friend class Machine;
  enum class Wants : std::uint8_t { nothing, yield, sleep, wait, move };
  enum class State : std::uint8_t { running, queued, asleep, on_its_way };
  static constexpr std::uint64_t kOnScale = us(1'000'000);  ///< So that none need be negative.

  Machine& machine_;
  const Kind kind_;
  std::unique_ptr<Life> life_;
  std::uint64_t mask_;
  unsigned processor_;
  State state_ = State::queued;
  Wants wants_ = Wants::nothing;
  bool waits_ = false;  ///< Asleep, and can be woken.
  bool woken_ = false;
  std::uint64_t left_ = 0;   ///< Of its work.
  std::uint64_t until_ = 0;  ///< Asleep or on its way; ~0: until it is woken.
  std::uint64_t ran_ = 0;
  /// What the scheduler holds against it: what it ran, forgiven but for a slice of sleep; on the scale of `had_on_`.
  std::uint64_t had_ = kOnScale;
  unsigned had_on_ = 0;
  std::uint64_t involuntary_ = 0;
  std::uint64_t queued_ = 0;  ///< Since when.
  std::uint64_t longest_wait_ = 0;
};

/// What things cost here.
struct Costs {
  std::uint64_t switched = us(1);    ///< From one thread to another.
  std::uint64_t woken_near = us(1);  ///< By a thread of the same processor.
  std::uint64_t woken_far = us(4);   ///< Of another one.
  std::uint64_t moved = us(25);
  std::uint64_t slice = us(3'000);
  std::uint64_t preempts = us(500);  ///< Who arrives and has had so much less than who runs takes its place.
  std::uint64_t balanced = 0;        ///< So often a thread moves from a longer queue to a shorter one; 0: never.
  bool siblings = false;    ///< Processors 0 and 1, 2 and 3... share a core: both busy, each does three fifths.
  bool steal_clock = true;  ///< The kernel knows which time its host has taken away.
};

/// Not thread-safe; deterministic.
class Machine {
 public:
  Machine(unsigned processors, Costs costs) : costs_(costs), processors_(processors) {}

  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  [[nodiscard]] shim::Moment moment() const noexcept { return {now_, kPerUs}; }
  [[nodiscard]] unsigned processors() const noexcept { return static_cast<unsigned>(processors_.size()); }
  [[nodiscard]] std::uint64_t all() const noexcept { return (std::uint64_t{1} << processors_.size()) - 1; }
  /// The processors that are online, as a mask.
  [[nodiscard]] std::uint64_t online() const noexcept;
  /// Processor time that somebody had so far.
  [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
  /// Threads that run or could.
  [[nodiscard]] unsigned running() const noexcept;

  /// Starts a thread, on the least crowded of the processors that it may run on.
  Thread& start(std::uint64_t mask, const std::function<Life(Thread&)>& life, Thread::Kind kind = {});
  Group& add_group(std::uint64_t quota = 0) { return *groups_.emplace_back(std::make_unique<Group>(quota)); }
  /// From one thread to another; nothing if that is not waiting, but that its next wait() ends at once.
  void wake(Thread& waker, Thread& thread);
  void run_for(std::uint64_t time);

  // From outside. `time`: from now on.
  /// Calls it then.
  void after(std::uint64_t time, std::function<void()> what);
  /// The host takes the processor away for so long. The kernel knows nothing of it, and who is there waits.
  void freeze(unsigned processor, std::uint64_t time);
  /// No thread of the group runs for so long.
  void stop(Group& group, std::uint64_t time);
  /// Who was on a processor that goes offline runs elsewhere; who could run only there, anywhere from now on.
  void set_online(unsigned processor, bool online);
  /// The thread runs on these processors only, from now on. Nothing if all of them are offline.
  void confine(Thread& thread, std::uint64_t mask);

 private:
  friend class Thread;
  struct Processor {
    Thread* current = nullptr;
    std::vector<Thread*> queue;
    std::uint64_t had = Thread::kOnScale;  ///< Of who runs, or ran last: where its scale is.
    std::uint64_t slice_ends = 0;
    std::uint64_t busy_until = 0;    ///< Switching.
    std::uint64_t frozen_until = 0;  ///< By the host.
    bool online = true;
  };
  struct Event {
    std::uint64_t when;
    std::function<void()> what;
  };
  void begin_tick();
  void step(Processor& processor);
  void act(Processor& processor, Thread& thread);
  void next(Processor& processor, const Thread* yielded = nullptr);
  void switch_out(Processor& processor, Thread& thread);
  [[nodiscard]] Thread* to_steal(unsigned idle) const noexcept;
  void steal_for(unsigned idle);
  void balance();
  void put(Thread& thread, unsigned processor);
  void arrive(Thread& thread);
  void leave(Thread& thread, unsigned processor);
  [[nodiscard]] bool is_idle(unsigned processor) const noexcept;
  [[nodiscard]] bool may_run(const Thread& thread) const noexcept {
    return thread.kind_.group == nullptr || !thread.kind_.group->stopped(now_);
  }
  [[nodiscard]] bool may(const Thread& thread, unsigned processor) const noexcept {
    return processors_[processor].online && (thread.mask_ >> processor & 1) != 0;
  }
  [[nodiscard]] bool slowed(const Processor& processor) const noexcept;
  [[nodiscard]] unsigned place(const Thread& thread) const noexcept;
  [[nodiscard]] std::uint64_t quiet() const noexcept;
  [[nodiscard]] std::uint64_t quiet(const Processor& processor) const noexcept;
  void pass(std::uint64_t time) noexcept;

  const Costs costs_;
  std::uint64_t now_ = us(1'000'000);
  std::uint64_t used_ = 0;
  std::uint64_t balanced_ = 0;
  unsigned balances_ = 0;
  bool acts_again_ = false;  ///< Somebody will at the next tick: it cannot be passed over.
  std::vector<Processor> processors_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Thread*> sleepers_;  ///< Asleep until a time, or on their way.
  std::vector<Event> events_;
};

}  // namespace lrpc::simulated
