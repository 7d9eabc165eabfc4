#include "netrpc/composite/handler_threads.h"

#include <sched.h>

#include <chrono>
#include <exception>
#include <utility>

#include "lrpc/detail/shim/system/futex.h"

namespace lrpc::netrpc::composite {

namespace {

/// How long a waiting thread polls before it sleeps. It yields each time, so that the other thread can run on the same
/// processor. A sleep and a wake-up take about as long.
constexpr std::chrono::microseconds kLook{20};
constexpr std::chrono::nanoseconds kForever{-1};
constexpr std::uint32_t kSleeps = std::uint32_t{1} << 31;  ///< In Round::unfinished: the waiting thread sleeps.

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
  // A handler may wait for a message, so if this thread receives, another one takes over while it sleeps.
  host_.engine().outside(host_, [&unfinished] {
    for (std::uint32_t seen = unfinished.fetch_or(kSleeps) | kSleeps; seen != kSleeps; seen = unfinished.load())
      (void)shim::futex_wait_private(unfinished, seen, kForever);
  });
}

/// Polls first: the thread in the monitor leaves soon, as it has just woken this one.
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
    worker.told.store(nothing, std::memory_order_relaxed);  // under the monitor, so it gets no new job before this
    worker.job->run();
    worker.next = std::exchange(free_, &worker);
    // The waiting thread needs the monitor to continue, so `round` exists until this thread releases it.
    if (round.unfinished.fetch_sub(1) == (kSleeps | 1)) shim::futex_wake_private(round.unfinished, 1);
    monitor_.unlock();
  }
}

}  // namespace lrpc::netrpc::composite
