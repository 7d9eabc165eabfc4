// The default against an oracle that knows the future: for each part of a situation the best fixed gate.
#pragma once

#include <cstdint>
#include <string>

#include "situation.h"

namespace lrpc::simulated {

/// How far the default was from the oracle.
struct Regret {
  /// What its calls took, divided by what they would have taken the oracle.
  double ratio = 1;
  double mean_us = 0;
  double oracle_us = 0;
  /// Of 10 ms, once it had settled, and recovered.
  std::uint64_t windows = 0;
  std::uint64_t bad_windows = 0;
  /// Calls, and time, until it was as good as the oracle: from the beginning, and from the end of the disturbance.
  struct Until {
    std::uint64_t calls = 0;
    std::uint64_t time = 0;
  };
  Until begun;
  Until recovered;
  double switches_a_second = 0;
  /// The longest call, and with plain futexes; of those under way, too.
  std::uint64_t longest = 0;
  std::uint64_t longest_futex = 0;
  /// What the hogs got, and beside plain futexes.
  double hogs = 0;
  double hogs_futex = 0;
};

Regret judge(const Situation& at);

}  // namespace lrpc::simulated
