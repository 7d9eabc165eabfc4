// Calls that block until a test releases them.
#pragma once

#include <condition_variable>
#include <mutex>

#include "conformance_service.h"
#include "eventually.h"

namespace testing_lrpc {

/// Calls of SleepFor block until they are released, one at a time or all.
struct Gated : ConformanceService {
  using ConformanceService::ConformanceService;
  /// Waits for the last procedure to unlock the mutex: its results may reach the caller before that.
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
  /// Waits until that many calls are inside. False if that does not happen.
  bool wait_inside(int how_many) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, [&] { return inside >= how_many; });
  }
  /// Waits until that many have left. False if that does not happen.
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
