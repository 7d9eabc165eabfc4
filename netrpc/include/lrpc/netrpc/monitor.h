// The monitor of a graph: one thread at a time is inside, as in the x-kernel, whose kernel processes do not preempt
// each other.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace lrpc::netrpc {

/// Work for the moment before the monitor is released: an engine then sends all queued messages at once.
class MonitorExit {
 public:
  /// Called once after Monitor::at_exit(), inside the monitor, which is released right after.
  virtual void leaving_monitor() noexcept = 0;

 protected:
  ~MonitorExit() = default;
};

/// A mutex that knows its owner. A thread holds it while it shepherds a message or runs events, and releases it only to
/// block or to run user code.
class Monitor {
 public:
  void lock() {
    mutex_.lock();
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  bool try_lock() {
    if (!mutex_.try_lock()) return false;
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    return true;
  }
  void unlock() {
    if (exit_ != nullptr) std::exchange(exit_, nullptr)->leaving_monitor();
    owner_.store(std::thread::id(), std::memory_order_relaxed);
    mutex_.unlock();
  }
  /// For asserts: the calling thread is inside.
  [[nodiscard]] bool held() const noexcept {
    return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  /// Inside the monitor: `exit` is called once, when the monitor is released next. Null cancels that.
  void at_exit(MonitorExit* exit) noexcept { exit_ = exit; }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
  MonitorExit* exit_ = nullptr;
};

using Shepherd = std::unique_lock<Monitor>;

}  // namespace lrpc::netrpc
