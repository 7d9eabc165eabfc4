// Many lookups that wait for one name share one watch of etcd, and so one connection.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "etcd/etcd.h"

namespace lrpc::directory {

/// Thread-safe. `etcd` must outlive it.
class SharedWatches {
 public:
  explicit SharedWatches(Etcd& etcd) noexcept : etcd_(etcd) {}

  /// Blocks until a key that begins with `prefix` is written after `revision`, at most `wait`, or until `stop` (within
  /// about a second). True: one was written. The first thread that waits for a prefix watches for all; when its time is
  /// over, another one continues. Errors: those of Etcd::watch(), for all threads that wait for the prefix. `may_watch`
  /// is called before this thread itself watches, and must not block; if it returns false, the wait is over for this
  /// thread alone.
  Result<bool> wait(const std::string& prefix, std::int64_t revision, std::chrono::milliseconds wait,
                    const std::function<bool()>& may_watch, const std::atomic<bool>& stop);
  /// The number of threads that wait now.
  [[nodiscard]] std::size_t waiting();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Watch {
    std::size_t waiting = 0;
    bool watched = false;  ///< One of the threads watches now.
    bool over = false;     ///< The watch is over, with `outcome`.
    Result<bool> outcome = false;
  };
  class Waiting;
  Result<bool> watch(const std::string& prefix, std::int64_t revision, Time until, const std::atomic<bool>& stop);

  Etcd& etcd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Watch>> watches_;  ///< Those that are not over.
};

}  // namespace lrpc::directory
