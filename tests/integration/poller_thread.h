// Whether a server's poller executes a procedure, and whether there can be a poller.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <array>
#include <string_view>

namespace testing_lrpc {

inline bool on_poller_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return std::string_view(name.data()) == "lrpc-poller";
}

/// If true, there are no pollers.
inline bool only_one_processor() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < 2;
}

}  // namespace testing_lrpc
