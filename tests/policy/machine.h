// A machine of processors, run queues and time slices, for policies to run on: no clock and no thread of the real one.
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lrpc/shim/call/distrust.h"

namespace lrpc::simulated {

/// The machine's unit of time is half a microsecond.
inline constexpr std::uint64_t kPerUs = 2;
constexpr std::uint64_t us(std::uint64_t count) { return count * kPerUs; }

class Machine;
class Thread;

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
  Thread(Machine& machine, std::uint64_t mask, unsigned processor) noexcept
      : machine_(machine), mask_(mask), processor_(processor) {}
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
  Pause wait() noexcept {
    wants_ = Wants::wait;
    return {};
  }
  /// Runs on these processors only, from now on.
  Pause keep_to(std::uint64_t mask) noexcept {
    mask_ = mask;
    wants_ = Wants::move;
    return {};
  }
  [[nodiscard]] std::uint16_t processor() const noexcept { return static_cast<std::uint16_t>(processor_); }
  [[nodiscard]] std::uint64_t ran() const noexcept { return ran_; }
  /// How often it was switched out although it could have gone on.
  [[nodiscard]] std::uint64_t involuntary() const noexcept { return involuntary_; }
  /// The longest that it has waited for a processor while others ran.
  [[nodiscard]] std::uint64_t longest_wait() const noexcept { return longest_wait_; }

 private:
  friend class Machine;
  enum class Wants : std::uint8_t { nothing, yield, sleep, wait, move };
  enum class State : std::uint8_t { running, queued, asleep, on_its_way };

  Machine& machine_;
  std::unique_ptr<Life> life_;
  std::uint64_t mask_;
  unsigned processor_;
  State state_ = State::queued;
  Wants wants_ = Wants::nothing;
  bool woken_ = false;
  std::uint64_t left_ = 0;   ///< Of its work.
  std::uint64_t until_ = 0;  ///< Asleep or on its way; ~0: until it is woken.
  std::uint64_t ran_ = 0;
  std::uint64_t had_ = 0;  ///< What the scheduler holds against it: what it ran, forgiven but for a slice of sleep.
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
};

/// Not thread-safe; deterministic.
class Machine {
 public:
  Machine(unsigned processors, Costs costs) : costs_(costs), processors_(processors) {}

  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  [[nodiscard]] shim::Moment moment() const noexcept { return {now_, kPerUs}; }
  [[nodiscard]] unsigned processors() const noexcept { return static_cast<unsigned>(processors_.size()); }
  [[nodiscard]] std::uint64_t all() const noexcept { return (std::uint64_t{1} << processors_.size()) - 1; }

  /// Starts a thread, on the least crowded of the processors that it may run on.
  Thread& start(std::uint64_t mask, const std::function<Life(Thread&)>& life);
  /// From one thread to another; nothing if that is not waiting, but that its next wait() ends at once.
  void wake(Thread& waker, Thread& thread);
  void run_for(std::uint64_t time);

 private:
  friend class Thread;
  struct Processor {
    Thread* current = nullptr;
    std::vector<Thread*> queue;
    std::uint64_t slice_ends = 0;
    std::uint64_t busy_until = 0;  ///< Switching.
  };

  void step(Processor& processor);
  void next(Processor& processor, const Thread* yielded = nullptr);
  void steal_for(unsigned idle);
  void put(Thread& thread, unsigned processor);
  void arrive(Thread& thread);
  [[nodiscard]] bool is_idle(unsigned processor) const noexcept {
    return processors_[processor].current == nullptr && processors_[processor].queue.empty();
  }
  [[nodiscard]] static bool may(const Thread& thread, unsigned processor) noexcept {
    return (thread.mask_ >> processor & 1) != 0;
  }
  [[nodiscard]] unsigned place(const Thread& thread) const noexcept;

  const Costs costs_;
  std::uint64_t now_ = us(1'000'000);
  std::vector<Processor> processors_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> sleepers_;  ///< Asleep until a time, or on their way.
};

}  // namespace lrpc::simulated
