// Threads for handlers of events (Bhatti and Schlichting §4.1, "Thread Management"): one handler that blocks does not
// delay the others. The threads take turns in the graph's monitor, as all threads do that carry messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc::composite {

/// Called under the monitor, except for its threads.
class HandlerThreads {
 public:
  /// Counts the jobs that one thread waits for.
  struct Round {
    std::atomic<std::uint32_t> unfinished{0};
  };
  class Job {
   public:
    virtual ~Job() = default;
    virtual void run() noexcept = 0;  ///< Called inside the monitor. May destroy the job.
  };

  /// Each thread starts at its first job: so a daemon has entered its sandbox before it has any.
  HandlerThreads(Host& host, std::size_t threads);
  HandlerThreads(const HandlerThreads&) = delete;
  HandlerThreads& operator=(const HandlerThreads&) = delete;
  /// Expects that no job is under way.
  ~HandlerThreads();

  /// A free thread runs the job, and `round`, which must outlive it, counts it. False: all threads are busy, or none
  /// could be started. Each thread has one job at a time, so a job that waits for others never delays them.
  [[nodiscard]] bool start(Job& job, Round& round) noexcept;
  /// Releases the monitor until all jobs of the round have run. If that takes long, another thread receives meanwhile.
  void wait(Round& round) noexcept;

 private:
  enum Told : std::uint32_t { nothing, sleeps, work, end_now };
  struct Worker {
    std::atomic<std::uint32_t> told = nothing;  ///< `sleeps`: set by the thread; who changes it wakes the thread.
    Job* job = nullptr;
    Round* round = nullptr;
    Worker* next = nullptr;
    std::thread thread{};
  };
  static void tell(Worker& worker, Told what) noexcept;
  void enter() noexcept;
  void serve(Worker& worker) noexcept;

  Host& host_;
  Monitor& monitor_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Worker* free_ = nullptr;  ///< Workers without a job; the last used first, as it may not sleep yet.
};

}  // namespace lrpc::netrpc::composite
