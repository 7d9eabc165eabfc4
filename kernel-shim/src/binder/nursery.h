// A thread with an empty descriptor table, which starts other threads that share the table.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "lrpc/detail/shim/system/thread.h"

namespace lrpc::shim {

/// Starts a thread that nobody joins. True: the thread owns `argument`.
[[nodiscard]] bool start_detached(const char* name, Thread::Body body, void* argument) noexcept;

/// A new table is not empty: it begins as a copy, and closing the copy flushes the program's own files. So do it once
/// only. If that fails for want of descriptors or memory, it is tried again.
class Nursery {
 public:
  /// Starts a thread with an empty table. False: that is not possible, or not now.
  bool start(Thread::Body body, void* argument);

 private:
  enum class State : std::uint8_t { none, coming, ready, refused };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::none;
  Thread::Body body_ = nullptr;  ///< To be started now, or null.
  void* argument_ = nullptr;
  bool started_ = false;
  bool waited_ = false;
  std::mutex one_at_a_time_;
};

}  // namespace lrpc::shim
