// A thread with an empty table of descriptors, which starts others that have it, too.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "lrpc/detail/shim/system/thread.h"

namespace lrpc::shim {

/// Starts a thread that nobody joins. True: it has its argument.
[[nodiscard]] bool start_detached(const char* name, Thread::Body body, void* argument) noexcept;

/// A table cannot be had empty: it begins as a copy, and closing that flushes the program's own files. Once is enough.
class Nursery {
 public:
  /// Starts a thread apart. False: that cannot be had.
  bool start(Thread::Body body, void* argument);

 private:
  enum class State : std::uint8_t { none, coming, ready, refused };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::none;
  Thread::Body body_ = nullptr;  ///< To be started now; null: nothing.
  void* argument_ = nullptr;
  bool started_ = false;
  bool waited_ = false;
  std::mutex one_at_a_time_;
};

}  // namespace lrpc::shim
