// What a nameserver says of its users, so much of each: who makes it talk without end neither fills a disk nor hides
// what others do.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// Not thread-safe: the event loop's.
class UserLog {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr double kBurst = 200;     ///< Lines that a user may cause at once.
  static constexpr double kPerSecond = 10;  ///< What comes back.
  /// Back by so much, a user who has used all up is written of again: in stretches, not a line now and then.
  static constexpr double kAgain = kBurst / 2;

  /// `sink`: NameserverOptions::log, may be null; must outlive it.
  explicit UserLog(const decltype(NameserverOptions::log)& sink) noexcept : sink_(sink) {}

  /// Writes a line about `user`, or leaves it out; says that it begins to, and afterwards how many lines those were.
  /// Debug lines are for who asks for them: all are written. Bounded work, but for the sink's.
  void write(LogLevel level, uid_t user, std::string_view line, Clock::time_point now = Clock::now());
  /// Users who have caused lines of late.
  [[nodiscard]] std::size_t size() const noexcept { return budgets_.size(); }

 private:
  struct Budget {
    double lines = kBurst;
    Clock::time_point as_of;
    std::uint64_t left_out = 0;  ///< 0: everything is written.
  };
  /// What it had, and has got since.
  static double lines_at(const Budget& budget, Clock::time_point now) noexcept;
  Budget& budget_of(uid_t user, Clock::time_point now);

  const decltype(NameserverOptions::log)& sink_;
  std::unordered_map<uid_t, Budget> budgets_;
};

}  // namespace lrpc::nameserver
