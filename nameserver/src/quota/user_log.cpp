#include "user_log.h"

#include <algorithm>
#include <string>

namespace lrpc::nameserver {

double UserLog::Budget::lines_at(Clock::time_point now) const noexcept {
  const double seconds = std::chrono::duration<double>(now - as_of).count();
  return std::min(burst, lines + seconds * per_second);
}

UserLog::Verdict UserLog::Budget::spend(Clock::time_point now) noexcept {
  lines = lines_at(now);
  as_of = now;
  if (lines < (left_out == 0 ? 1 : burst * kAgain))
    return left_out++ == 0 ? Verdict::begin_to_leave_out : Verdict::leave_out;
  lines -= 1;
  return Verdict::write;
}

void UserLog::tell_what_was_left_out(LogLevel level, uid_t user, Budget& budget, Clock::time_point now) {
  const std::uint64_t left_out = std::exchange(budget.left_out, 0);
  if (left_out == 0) return;
  write_within_all(level, user,
                   std::to_string(left_out) + " lines about user " + std::to_string(user) + " were left out", false,
                   now);
}

/// A user whose budget is full is forgotten: a new budget is the same.
void UserLog::forget_the_quiet(Clock::time_point now) {
  for (auto one = budgets_.begin(); one != budgets_.end();) {
    auto& [key, budget] = *one;
    if (budget.lines_at(now) < kBurst) {
      ++one;
      continue;
    }
    tell_what_was_left_out(key.first, key.second, budget, now);
    one = budgets_.erase(one);
  }
  sweep_at_ = std::max(kFirstSweep, 2 * budgets_.size());  // so that sweeps cost each newcomer no more than a few looks
}

UserLog::Budget& UserLog::budget_of(LogLevel level, uid_t user, Clock::time_point now) {
  const std::pair key(level, user);
  if (const auto found = budgets_.find(key); found != budgets_.end()) return found->second;
  if (budgets_.size() >= sweep_at_) forget_the_quiet(now);
  return budgets_.emplace(key, Budget{kBurst, kPerSecond, now}).first->second;
}

void UserLog::write(LogLevel level, uid_t user, std::string_view line, Clock::time_point now) {
  if (!sink_) return;
  if (level == LogLevel::debug) return sink_(level, line);
  Budget& budget = budget_of(level, user, now);
  const Verdict verdict = budget.spend(now);
  if (verdict == Verdict::leave_out) return;
  if (verdict == Verdict::begin_to_leave_out) {
    const std::string notice = "too many lines about user " + std::to_string(user) + ": what follows is left out";
    return write_within_all(level, user, notice, false, now);
  }
  tell_what_was_left_out(level, user, budget, now);
  write_within_all(level, user, line, budget.lines >= kBurst - kFew, now);
}

void UserLog::write_within_all(LogLevel level, uid_t user, std::string_view line, bool causes_little,
                               Clock::time_point now) {
  if (user == 0) return sink_(level, line);
  Budget& all = all_.try_emplace({level, causes_little}, Budget{kAllBurst, kAllPerSecond, now}).first->second;
  const Verdict verdict = all.spend(now);
  if (verdict == Verdict::leave_out) return;
  if (verdict == Verdict::begin_to_leave_out)
    return sink_(level, "too many lines about all users together: what follows is left out");
  if (const std::uint64_t left_out = std::exchange(all.left_out, 0); left_out != 0)
    sink_(level, std::to_string(left_out) + " lines about several users were left out");
  sink_(level, line);
}

}  // namespace lrpc::nameserver
