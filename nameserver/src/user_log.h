// What a nameserver says of its users, so much of each: who makes it talk without end neither fills a disk nor hides
// what others do.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

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
  /// So many budgets are kept without a look at whose are full.
  static constexpr std::size_t kFirstSweep = 256;

  /// `sink`: NameserverOptions::log, may be null; must outlive it.
  explicit UserLog(const decltype(NameserverOptions::log)& sink) noexcept : sink_(sink) {}

  /// Writes a line about `user`, or leaves it out; says that it begins to, and how many lines those were with the next
  /// one that is written, or when the user is forgotten. Each level counts for itself: the sink may drop some, and what
  /// a user does all day must not hide what it does wrong. Debug lines are for who asks for them: all are written.
  /// Constant work on average, but for the sink's.
  void write(LogLevel level, uid_t user, std::string_view line, Clock::time_point now = Clock::now());
  /// What is remembered: a budget for each user and level that have caused lines of late.
  [[nodiscard]] std::size_t size() const noexcept { return budgets_.size(); }

 private:
  struct Budget {
    double lines = kBurst;
    Clock::time_point as_of;
    std::uint64_t left_out = 0;  ///< 0: everything is written.
  };
  /// What it had, and has got since.
  static double lines_at(const Budget& budget, Clock::time_point now) noexcept;
  Budget& budget_of(LogLevel level, uid_t user, Clock::time_point now);
  void forget_the_quiet(Clock::time_point now);
  void tell_what_was_left_out(LogLevel level, uid_t user, Budget& budget);

  const decltype(NameserverOptions::log)& sink_;
  std::map<std::pair<LogLevel, uid_t>, Budget> budgets_;
  std::size_t sweep_at_ = kFirstSweep;  ///< Budgets at which that look comes next.
};

}  // namespace lrpc::nameserver
