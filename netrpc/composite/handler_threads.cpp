#include "netrpc/composite/handler_threads.h"

#include <sched.h>

#include <chrono>
#include <exception>
#include <utility>

#include "lrpc/detail/shim/system/futex.h"

namespace lrpc::netrpc::composite {

namespace {

/// How long a thread that waits for another one looks again and again before it sleeps. On one processor it gives way
/// to that one each time; on two it sees what that one does. A sleep and a wake-up take about as long.
constexpr std::chrono::microseconds kLook{20};
constexpr std::chrono::nanoseconds kForever{-1};
constexpr std::uint32_t kSleeps = std::uint32_t{1} << 31;  ///< In Round::unfinished: who waits does so in the kernel.

template <class Done>
bool seen_soon(Done done) noexcept {
  if (done()) return true;
  const auto until = std::chrono::steady_clock::now() + kLook;
  while (std::chrono::steady_clock::now() < until) {
    ::sched_yield();
    if (done()) return true;
  }
  return false;
}

}  // namespace

HandlerThreads::HandlerThreads(Host& host, std::size_t threads) : host_(host), monitor_(host.monitor()) {
  while (workers_.size() < threads) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.next = std::exchange(free_, &worker);
  }
}

HandlerThreads::~HandlerThreads() {
  for (const auto& worker : workers_) {
    if (!worker->thread.joinable()) continue;
    tell(*worker, end_now);
    worker->thread.join();
  }
}

void HandlerThreads::tell(Worker& worker, Told what) noexcept {
  if (worker.told.exchange(what, std::memory_order_acq_rel) == sleeps) shim::futex_wake_private(worker.told, 1);
}

bool HandlerThreads::start(Job& job, Round& round) noexcept {
  if (free_ == nullptr) return false;
  Worker& worker = *free_;
  if (!worker.thread.joinable()) {
    try {
      worker.thread = std::thread([this, &worker] { serve(worker); });
    } catch (const std::exception&) {
      return false;
    }
  }
  free_ = worker.next;
  worker.job = &job;
  worker.round = &round;
  round.unfinished.fetch_add(1, std::memory_order_relaxed);
  tell(worker, work);
  return true;
}

void HandlerThreads::wait(Round& round) noexcept {
  auto& unfinished = round.unfinished;
  const auto done = [&] { return (unfinished.load(std::memory_order_acquire) & ~kSleeps) == 0; };
  if (done()) return;
  monitor_.unlock();
  const bool soon = seen_soon(done);
  enter();
  if (soon) return;
  // A handler may wait for what is to arrive, so whoever receives does not sleep here.
  host_.engine().outside(host_, [&unfinished] {
    for (std::uint32_t seen = unfinished.fetch_or(kSleeps) | kSleeps; seen != kSleeps; seen = unfinished.load())
      (void)shim::futex_wait_private(unfinished, seen, kForever);
  });
}

/// Whoever is inside leaves soon: it has just told this thread something.
void HandlerThreads::enter() noexcept {
  if (!seen_soon([this] { return monitor_.try_lock(); })) monitor_.lock();
}

void HandlerThreads::serve(Worker& worker) noexcept {
  for (;;) {
    if (!seen_soon([&] { return worker.told.load(std::memory_order_acquire) != nothing; })) {
      std::uint32_t expected = nothing;
      worker.told.compare_exchange_strong(expected, sleeps, std::memory_order_acq_rel);
      while (worker.told.load(std::memory_order_acquire) == sleeps)
        (void)shim::futex_wait_private(worker.told, sleeps, kForever);
    }
    if (worker.told.load(std::memory_order_acquire) == end_now) return;
    enter();
    Round& round = *worker.round;
    worker.told.store(nothing, std::memory_order_relaxed);  // under the monitor: nobody tells it anything before this
    worker.job->run();
    worker.next = std::exchange(free_, &worker);
    // Who waits needs the monitor to go on, so the round is there until this lets that go.
    if (round.unfinished.fetch_sub(1) == (kSleeps | 1)) shim::futex_wake_private(round.unfinished, 1);
    monitor_.unlock();
  }
}

}  // namespace lrpc::netrpc::composite
