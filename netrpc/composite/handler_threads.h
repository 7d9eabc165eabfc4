// Threads for handlers of events (Bhatti and Schlichting §4.1, "Thread Management"): one handler that blocks does not
// hold up the others. They take turns in the graph's monitor, as all threads do that shepherd messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc::composite {

/// Under the monitor, but for its threads.
class HandlerThreads {
 public:
  /// What somebody waits for.
  struct Round {
    std::atomic<std::uint32_t> unfinished{0};
  };
  class Job {
   public:
    virtual ~Job() = default;
    virtual void run() noexcept = 0;  ///< Inside the monitor. The job may end itself.
  };

  /// Each thread begins with its first job: a daemon shuts itself in before it has any.
  HandlerThreads(Host& host, std::size_t threads);
  HandlerThreads(const HandlerThreads&) = delete;
  HandlerThreads& operator=(const HandlerThreads&) = delete;
  /// No job is under way.
  ~HandlerThreads();

  /// A thread will run it, and `round`, which lives as long, has one more to wait for. False: all are busy, or there is
  /// no thread to be had. Each job has a thread of its own, so that those which wait for others never hold these up.
  [[nodiscard]] bool start(Job& job, Round& round) noexcept;
  /// Lets the monitor go until all jobs of the round have run. Another thread receives meanwhile, if it takes long.
  void wait(Round& round) noexcept;

 private:
  enum Told : std::uint32_t { nothing, sleeps, work, end_now };
  struct Worker {
    std::atomic<std::uint32_t> told = nothing;  ///< `sleeps`: by itself, and who tells it something wakes it.
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
  Worker* free_ = nullptr;  ///< That have no job; first the one that has had one last, and perhaps does not sleep yet.
};

}  // namespace lrpc::netrpc::composite
