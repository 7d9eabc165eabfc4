// A simulated machine of processors, run queues and time slices, on which policies run. It uses no clock and no thread
// of the real machine. Its host can take processors away; its administrator can stop, confine and limit threads.
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

/// Threads that the kernel stops together: a stopped process, or a control group that has used up its quota.
class Group {
 public:
  /// `quota`: processor time in each period; 0: no limit.
  explicit Group(std::uint64_t quota = 0, std::uint64_t period = us(100'000)) noexcept
      : quota_(quota), period_(period) {}
  [[nodiscard]] bool stopped(std::uint64_t now) const noexcept { return now < stopped_until_; }

 private:
  friend class Machine;
  void used(std::uint64_t time, std::uint64_t now) noexcept;
  /// How long all of its threads together can surely run before the group stops.
  [[nodiscard]] std::uint64_t left(std::uint64_t now) const noexcept;

  const std::uint64_t quota_;
  const std::uint64_t period_;
  std::uint64_t used_ = 0;
  std::uint64_t this_period_ = 0;
  std::uint64_t stopped_until_ = 0;
};

/// What a thread does: a coroutine that uses co_await for everything that takes time.
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
    bool realtime = false;  ///< SCHED_FIFO: runs before all others, without time slices.
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
  /// Runs for `time`.
  Pause work(std::uint64_t time) noexcept {
    left_ = time;
    return {};
  }
  Pause yield() noexcept {
    wants_ = Wants::yield;
    return {};
  }
  /// Leaves the processor for `time`.
  Pause sleep(std::uint64_t time) noexcept;
  /// Leaves the processor until another thread wakes this one. Returns at once if one has done so since the last wait.
  Pause wait() noexcept;
  /// The same, for `time` at most.
  Pause wait_for(std::uint64_t time) noexcept;
  /// From now on runs only on these processors. No effect if all of them are offline.
  Pause keep_to(std::uint64_t mask) noexcept;
  [[nodiscard]] std::uint16_t processor() const noexcept { return static_cast<std::uint16_t>(processor_); }
  /// Processor time by the thread's clock. Without a steal clock it includes the time in which its processor was
  /// frozen.
  [[nodiscard]] std::uint64_t ran() const noexcept { return ran_; }
  [[nodiscard]] bool realtime() const noexcept { return kind_.realtime; }
  /// How often it was preempted.
  [[nodiscard]] std::uint64_t involuntary() const noexcept { return involuntary_; }
  /// Its longest wait for a processor while other threads ran.
  [[nodiscard]] std::uint64_t longest_wait() const noexcept { return longest_wait_; }

 private:
  friend class Machine;
  enum class Wants : std::uint8_t { nothing, yield, sleep, wait, move };
  enum class State : std::uint8_t { running, queued, asleep, on_its_way };
  static constexpr std::uint64_t kOnScale = us(1'000'000);  ///< An offset, so that no value is negative.

  Machine& machine_;
  const Kind kind_;
  std::unique_ptr<Life> life_;
  std::uint64_t mask_;
  unsigned processor_;
  State state_ = State::queued;
  Wants wants_ = Wants::nothing;
  bool waits_ = false;  ///< Asleep, and can be woken.
  bool woken_ = false;
  std::uint64_t left_ = 0;   ///< Rest of its current work.
  std::uint64_t until_ = 0;  ///< While asleep or on its way; ~0: until it is woken.
  std::uint64_t ran_ = 0;
  /// The run time that the scheduler charges it. After a sleep it is at most one slice less than the running thread's.
  /// On the scale of processor `had_on_`.
  std::uint64_t had_ = kOnScale;
  unsigned had_on_ = 0;
  std::uint64_t involuntary_ = 0;
  std::uint64_t queued_ = 0;  ///< Since when it is queued.
  std::uint64_t longest_wait_ = 0;
};

/// The costs on this machine.
struct Costs {
  std::uint64_t switched = us(1);    ///< A switch between two threads.
  std::uint64_t woken_near = us(1);  ///< A wake-up by a thread of the same processor.
  std::uint64_t woken_far = us(4);   ///< A wake-up by a thread of another processor.
  std::uint64_t moved = us(25);
  std::uint64_t slice = us(3'000);
  std::uint64_t preempts = us(500);  ///< An arriving thread charged this much less preempts the running one.
  std::uint64_t balanced = 0;        ///< Period: one thread moves from a longer queue to a shorter one; 0: never.
  bool siblings = false;    ///< Processors 0 and 1, 2 and 3... share a core: if both are busy, each runs at 3/5.
  bool steal_clock = true;  ///< The kernel knows how much time the host has taken away.
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
  /// Processor time that threads have used so far.
  [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
  /// Threads that run or are ready to run.
  [[nodiscard]] unsigned running() const noexcept;

  /// Starts a thread, on the least crowded of its processors.
  Thread& start(std::uint64_t mask, const std::function<Life(Thread&)>& life, Thread::Kind kind = {});
  Group& add_group(std::uint64_t quota = 0) { return *groups_.emplace_back(std::make_unique<Group>(quota)); }
  /// One thread wakes another. If that does not wait, its next wait() returns at once.
  void wake(Thread& waker, Thread& thread);
  void run_for(std::uint64_t time);

  // Events from outside. `time`: from now on.
  /// Calls `what` then.
  void after(std::uint64_t time, std::function<void()> what);
  /// The host takes the processor away for `time`. The kernel does not notice, and the processor's threads wait.
  void freeze(unsigned processor, std::uint64_t time);
  /// No thread of the group runs for `time`.
  void stop(Group& group, std::uint64_t time);
  /// Threads of a processor that goes offline move to others. A thread that may run only there may then run anywhere.
  void set_online(unsigned processor, bool online);
  /// From now on the thread runs only on these processors. No effect if all of them are offline.
  void confine(Thread& thread, std::uint64_t mask);

 private:
  friend class Thread;
  struct Processor {
    Thread* current = nullptr;
    std::vector<Thread*> queue;
    std::uint64_t had = Thread::kOnScale;  ///< Largest `had_` of a thread that ran: the zero of its scale.
    std::uint64_t slice_ends = 0;
    std::uint64_t busy_until = 0;    ///< Until a switch is complete.
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
  bool acts_again_ = false;  ///< A thread acts again at the next tick, so that tick cannot be skipped.
  std::vector<Processor> processors_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Thread*> sleepers_;  ///< Threads that sleep until a time or are on their way.
  std::vector<Event> events_;
};

}  // namespace lrpc::simulated
