// Waits for events that happen at some time.
#pragma once

#include <chrono>
#include <thread>

namespace testing_lrpc {

/// For waits of the library: only against hangs. No load and no pause of the machine takes this long.
inline constexpr std::chrono::minutes kPatience{4};
inline constexpr int kPatienceMs = std::chrono::milliseconds(kPatience).count();
/// For procedures that something else ends: they return by themselves only long after the test has failed.
inline constexpr unsigned kForeverMs = 600'000;

/// True as soon as `holds` does; false if it does not within four minutes, which only a fault takes.
template <class Condition>
[[nodiscard]] bool eventually(Condition&& holds) {
  constexpr std::chrono::milliseconds kPause{5};
  for (int i = 0; i < kPatience / kPause; ++i) {  // counts looks, not time: a frozen machine gets as many
    if (holds()) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

}  // namespace testing_lrpc
