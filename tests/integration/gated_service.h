// Calls that stay until a test lets them go.
#pragma once

#include <condition_variable>
#include <mutex>

#include "conformance_service.h"
#include "eventually.h"

namespace testing_lrpc {

/// Calls of SleepFor stay until they are let go, one at a time or all.
struct Gated : ConformanceService {
  using ConformanceService::ConformanceService;
  /// After the last of them: a call's results may be with its caller before the procedure has given up the mutex.
  ~Gated() { const std::lock_guard lock(mutex); }
  void SleepFor(CallContext&, std::uint32_t) {
    std::unique_lock lock(mutex);
    ++inside;
    changed.notify_all();
    changed.wait(lock, [this] { return may_leave > 0; });
    --may_leave;
    --inside;
    ++left;
    changed.notify_all();
  }
  void let_go(int how_many) {
    const std::lock_guard lock(mutex);
    may_leave += how_many;
    changed.notify_all();
  }
  void let_all_go() { let_go(1'000'000); }
  /// Waits until so many are inside; false if that does not happen.
  bool wait_inside(int how_many) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, [&] { return inside >= how_many; });
  }
  /// Waits until so many have left; false if that does not happen.
  bool wait_left(int how_many) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, [&] { return left >= how_many; });
  }
  int inside_now() {
    const std::lock_guard lock(mutex);
    return inside;
  }
  int left_so_far() {
    const std::lock_guard lock(mutex);
    return left;
  }
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  int left = 0;
  int may_leave = 0;
};

}  // namespace testing_lrpc
