#include "user_log.h"

#include <algorithm>
#include <string>

namespace lrpc::nameserver {

double UserLog::lines_at(const Budget& budget, Clock::time_point now) noexcept {
  const double seconds = std::chrono::duration<double>(now - budget.as_of).count();
  return std::min(kBurst, budget.lines + seconds * kPerSecond);
}

void UserLog::tell_what_was_left_out(LogLevel level, uid_t user, Budget& budget) {
  const std::uint64_t left_out = std::exchange(budget.left_out, 0);
  if (left_out != 0) {
    sink_(level, std::to_string(left_out) + " lines about user " + std::to_string(user) + " were left out");
  }
}

/// Whose budget is full is as if it had never been.
void UserLog::forget_the_quiet(Clock::time_point now) {
  for (auto one = budgets_.begin(); one != budgets_.end();) {
    auto& [key, budget] = *one;
    if (lines_at(budget, now) < kBurst) {
      ++one;
      continue;
    }
    tell_what_was_left_out(key.first, key.second, budget);
    one = budgets_.erase(one);
  }
  sweep_at_ = std::max(kFirstSweep, 2 * budgets_.size());  // so that sweeps cost each newcomer no more than a few looks
}

UserLog::Budget& UserLog::budget_of(LogLevel level, uid_t user, Clock::time_point now) {
  const std::pair key(level, user);
  if (const auto found = budgets_.find(key); found != budgets_.end()) return found->second;
  if (budgets_.size() >= sweep_at_) forget_the_quiet(now);
  return budgets_.emplace(key, Budget{.as_of = now}).first->second;
}

void UserLog::write(LogLevel level, uid_t user, std::string_view line, Clock::time_point now) {
  if (!sink_) return;
  if (level == LogLevel::debug) return sink_(level, line);
  Budget& budget = budget_of(level, user, now);
  budget.lines = lines_at(budget, now);
  budget.as_of = now;
  if (budget.lines < (budget.left_out == 0 ? 1 : kAgain)) {
    if (budget.left_out++ == 0) {
      sink_(level, "too many lines about user " + std::to_string(user) + ": what follows is left out");
    }
    return;
  }
  tell_what_was_left_out(level, user, budget);
  budget.lines -= 1;
  sink_(level, line);
}

}  // namespace lrpc::nameserver
