// Compares the default with an oracle that knows the future and chooses the best fixed gate for each part of a
// situation.
#pragma once

#include <cstdint>
#include <string>

#include "situation.h"

namespace lrpc::simulated {

/// How much worse the default was than the oracle.
struct Regret {
  /// The time of its calls, divided by the time that they would have taken with the oracle.
  double ratio = 1;
  double mean_us = 0;
  double oracle_us = 0;
  /// Windows of 10 ms in the settled and in the recovered part.
  std::uint64_t windows = 0;
  std::uint64_t bad_windows = 0;
  /// Calls and time until it was as good as the oracle, from the beginning and from the end of the disturbance.
  struct Until {
    std::uint64_t calls = 0;
    std::uint64_t time = 0;
  };
  Until begun;
  Until recovered;
  double switches_a_second = 0;
  /// The longest call with the default and with plain futexes, including those still under way.
  std::uint64_t longest = 0;
  std::uint64_t longest_futex = 0;
  /// The hogs' processor time with the default and with plain futexes.
  double hogs = 0;
  double hogs_futex = 0;
};

Regret judge(const Situation& at);

}  // namespace lrpc::simulated
