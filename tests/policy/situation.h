// What runs on a simulated machine, and what disturbs it: given by hand, or drawn at random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "domains.h"

namespace lrpc::simulated {

/// A disturbance: it happens once, and ends.
struct Disturbance {
  enum class Kind : std::uint8_t {
    none,
    machine_frozen,     ///< The host freezes all processors.
    processor_frozen,   ///< The host freezes one processor.
    server_stopped,     ///< SIGSTOP to the first server.
    client_stopped,     ///< SIGSTOP to the first server's callers.
    processor_offline,  ///< And online again.
    server_confined,    ///< To one processor.
    callers_confined,
    both_confined,  ///< Both to the same processor.
    apart,          ///< Each to its own. All confinements end.
    hogs,           ///< Two hogs.
    build,          ///< Two jobs.
  };
  Kind kind = Kind::none;
  unsigned processor = 0;
  std::uint64_t lasts = 0;
};

struct Situation {
  enum class Quota : std::uint8_t { none, server, callers, both };

  std::string name;
  unsigned processors = 2;
  unsigned servers = 1;
  unsigned callers = 1;  ///< Of each server.
  Pattern pattern = {};
  unsigned hogs = 0;
  unsigned builds = 0;
  bool third_party = false;
  bool apart = false;  ///< Callers confined to the first processor, servers to the second.
  bool lrpcd = false;  ///< lrpcd's allocator rules over the servers' pollers.
  Quota quota = Quota::none;
  Costs costs = {};
  Disturbance disturbance = {};

  /// A random situation.
  static Situation draw(std::uint64_t seed);
  [[nodiscard]] std::string what() const;
};

/// When each part begins, counted from the beginning of the situation.
struct Times {
  std::uint64_t settled = us(50'000);
  std::uint64_t disturbed = us(250'000);
  std::uint64_t ended = us(250'000);  ///< The disturbance has ended.
  std::uint64_t recovered = us(250'000);
  std::uint64_t end = us(250'000);
  static Times of(const Situation& at);
};

struct Outcome {
  Calls calls;                   ///< Since it settled.
  History history{0};            ///< From the beginning.
  std::uint64_t stuck = 0;       ///< How long the longest call that is under way has taken.
  double hogs = 0;               ///< Their share of processor time since it settled.
  double third_us = 0;           ///< Since it settled.
  double switches_a_second = 0;  ///< The same.
  [[nodiscard]] double mean_us() const { return calls.mean_us(); }
};

Outcome run(const Situation& at, Gate gate, const Times& times = {});

}  // namespace lrpc::simulated
