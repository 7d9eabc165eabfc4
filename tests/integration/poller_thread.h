// Whether a procedure is executed by a server's poller.
#pragma once

#include <pthread.h>

#include <array>
#include <string_view>

namespace testing_lrpc {

inline bool on_poller_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return std::string_view(name.data()) == "lrpc-poller";
}

}  // namespace testing_lrpc
