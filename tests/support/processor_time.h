// Processor time. Unlike elapsed time, it hardly depends on what other processes do.
#pragma once

#include <time.h>

#include <chrono>

namespace testing_lrpc {

/// Processor time of the calling thread; with CLOCK_PROCESS_CPUTIME_ID of the whole process.
inline std::chrono::nanoseconds processor_time(clockid_t whose = CLOCK_THREAD_CPUTIME_ID) {
  timespec used{};
  clock_gettime(whose, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace testing_lrpc
