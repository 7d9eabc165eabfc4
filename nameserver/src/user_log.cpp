#include "user_log.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lrpc::nameserver {
namespace {

/// So many users are remembered without a look at who may be forgotten.
constexpr std::size_t kUsersKept = 256;

}  // namespace

double UserLog::lines_at(const Budget& budget, Clock::time_point now) noexcept {
  const double seconds = std::chrono::duration<double>(now - budget.as_of).count();
  return std::min(kBurst, budget.lines + seconds * kPerSecond);
}

UserLog::Budget& UserLog::budget_of(uid_t user, Clock::time_point now) {
  if (const auto found = budgets_.find(user); found != budgets_.end()) return found->second;
  if (budgets_.size() >= kUsersKept) {
    std::erase_if(budgets_, [&](const auto& one) {
      return one.second.left_out == 0 && lines_at(one.second, now) >= kBurst;  // is as if it had never been
    });
  }
  return budgets_.emplace(user, Budget{.as_of = now}).first->second;
}

void UserLog::write(LogLevel level, uid_t user, std::string_view line, Clock::time_point now) {
  if (!sink_) return;
  if (level == LogLevel::debug) return sink_(level, line);
  Budget& budget = budget_of(user, now);
  budget.lines = lines_at(budget, now);
  budget.as_of = now;
  const std::string about = " about user " + std::to_string(user);
  if (budget.lines < (budget.left_out == 0 ? 1 : kAgain)) {
    if (budget.left_out++ == 0) sink_(LogLevel::warning, "too many lines" + about + ": what follows is left out");
    return;
  }
  if (const std::uint64_t left_out = std::exchange(budget.left_out, 0); left_out != 0) {
    sink_(LogLevel::warning, std::to_string(left_out) + " lines" + about + " were left out");
  }
  budget.lines -= 1;
  sink_(level, line);
}

}  // namespace lrpc::nameserver
