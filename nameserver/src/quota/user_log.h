// Rate limit of the log, per user and for all users together: peers that cause lines without end neither fill a disk
// nor hide what others do.
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
  /// With this part of its burst back, a user who has used all up is written of again: in stretches, not a line now and
  /// then.
  static constexpr double kAgain = 0.5;
  /// What all users may cause together. Users who cause little (fewer than kFew lines of late) have as much apart from
  /// the others, so that it takes many users, not a few loud ones, to hide what they do.
  static constexpr double kAllBurst = 1000;
  static constexpr double kAllPerSecond = 20;
  static constexpr double kFew = 20;
  /// So many budgets are kept without a look at whose are full.
  static constexpr std::size_t kFirstSweep = 256;

  /// `sink`: NameserverOptions::log, may be null; must outlive it.
  explicit UserLog(const decltype(NameserverOptions::log)& sink) noexcept : sink_(sink) {}

  /// Writes a line about `user`, or leaves it out; says that it begins to, and how many lines those were with the next
  /// one that is written, or when the user is forgotten. Each level counts for itself: the sink may drop some, and what
  /// a user does all day must not hide what it does wrong. The lines about all users together are limited in the same
  /// way, but for those about root. Debug lines are written only if asked for, and then all are.
  /// Constant work on average, but for the sink's.
  void write(LogLevel level, uid_t user, std::string_view line, Clock::time_point now = Clock::now());
  /// What is remembered: a budget for each user and level that have caused lines of late.
  [[nodiscard]] std::size_t size() const noexcept { return budgets_.size(); }

 private:
  enum class Verdict : std::uint8_t { write, begin_to_leave_out, leave_out };
  struct Budget {
    double burst;
    double per_second;
    Clock::time_point as_of;
    double lines = burst;
    std::uint64_t left_out = 0;  ///< 0: everything is written.

    /// What it had, and has got since.
    [[nodiscard]] double lines_at(Clock::time_point now) const noexcept;
    /// One more line is to be written.
    Verdict spend(Clock::time_point now) noexcept;
  };
  Budget& budget_of(LogLevel level, uid_t user, Clock::time_point now);
  void forget_the_quiet(Clock::time_point now);
  void tell_what_was_left_out(LogLevel level, uid_t user, Budget& budget, Clock::time_point now);
  void write_within_all(LogLevel level, uid_t user, std::string_view line, bool causes_little, Clock::time_point now);

  const decltype(NameserverOptions::log)& sink_;
  std::map<std::pair<LogLevel, uid_t>, Budget> budgets_;
  std::map<std::pair<LogLevel, bool>, Budget> all_;  ///< True: of the users who cause little.
  std::size_t sweep_at_ = kFirstSweep;               ///< Budgets at which that look comes next.
};

}  // namespace lrpc::nameserver
