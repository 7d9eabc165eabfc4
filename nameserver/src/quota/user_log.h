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
  static constexpr double kPerSecond = 10;  ///< How many come back.
  /// When a user has used up its burst, its lines are written again once this part of the burst has come back: in
  /// stretches, not a line now and then.
  static constexpr double kAgain = 0.5;
  /// What all users may cause together. Users who cause little (fewer than kFew lines recently) have as much for
  /// themselves, so that it takes many users, not a few loud ones, to hide what they do.
  static constexpr double kAllBurst = 1000;
  static constexpr double kAllPerSecond = 20;
  static constexpr double kFew = 20;
  /// Up to so many budgets are kept before full ones are searched for.
  static constexpr std::size_t kFirstSweep = 256;

  /// `sink`: NameserverOptions::log, may be null; must outlive it.
  explicit UserLog(const decltype(NameserverOptions::log)& sink) noexcept : sink_(sink) {}

  /// Writes a line about `user`, or leaves it out. Says when lines begin to be left out; says how many they were with
  /// the next line that is written, or when the user is forgotten. Each level has its own budget: the sink may drop a
  /// level, and a user's ordinary lines must not hide its warnings. The lines about all users together are limited in
  /// the same way, except those about root. Debug lines are not limited: the sink drops them unless they are asked for.
  /// Constant work on average, apart from the sink's.
  void write(LogLevel level, uid_t user, std::string_view line, Clock::time_point now = Clock::now());
  /// The number of budgets: one for each user and level that have caused lines recently.
  [[nodiscard]] std::size_t size() const noexcept { return budgets_.size(); }

 private:
  enum class Verdict : std::uint8_t { write, begin_to_leave_out, leave_out };
  struct Budget {
    double burst;
    double per_second;
    Clock::time_point as_of;
    double lines = burst;
    std::uint64_t left_out = 0;  ///< 0: everything is written.

    /// How many lines it has at `now`.
    [[nodiscard]] double lines_at(Clock::time_point now) const noexcept;
    /// Takes one line from the budget, if there is one.
    Verdict spend(Clock::time_point now) noexcept;
  };
  Budget& budget_of(LogLevel level, uid_t user, Clock::time_point now);
  void forget_the_quiet(Clock::time_point now);
  void tell_what_was_left_out(LogLevel level, uid_t user, Budget& budget, Clock::time_point now);
  void write_within_all(LogLevel level, uid_t user, std::string_view line, bool causes_little, Clock::time_point now);

  const decltype(NameserverOptions::log)& sink_;
  std::map<std::pair<LogLevel, uid_t>, Budget> budgets_;
  std::map<std::pair<LogLevel, bool>, Budget> all_;  ///< True: for the users who cause little.
  std::size_t sweep_at_ = kFirstSweep;               ///< At this number of budgets full ones are searched for.
};

}  // namespace lrpc::nameserver
