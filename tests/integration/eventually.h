// Waiting for what comes about in its own time.
#pragma once

#include <chrono>
#include <thread>

namespace testing_lrpc {

/// True as soon as it holds; false if it does not within half a minute.
template <class Condition>
[[nodiscard]] bool eventually(Condition&& holds) {
  for (int i = 0; i < 6000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace testing_lrpc
