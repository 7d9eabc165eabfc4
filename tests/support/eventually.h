// Waiting for what comes about in its own time.
#pragma once

#include <chrono>
#include <thread>

namespace testing_lrpc {

/// For waits that a library makes: a net for hangs. No load and no pause of the machine takes so long.
inline constexpr std::chrono::minutes kPatience{4};
inline constexpr int kPatienceMs = std::chrono::milliseconds(kPatience).count();
/// For procedures that something else ends: they return by themselves only after a test has long failed.
inline constexpr unsigned kForeverMs = 600'000;

/// True as soon as it holds; false if it does not within four minutes, which nothing but a fault takes.
template <class Condition>
[[nodiscard]] bool eventually(Condition&& holds) {
  constexpr std::chrono::milliseconds kPause{5};
  for (int i = 0; i < kPatience / kPause; ++i) {  // looks, not time: a frozen machine is given as many
    if (holds()) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

}  // namespace testing_lrpc
