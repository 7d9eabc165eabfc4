// What is logged about a user who makes the nameserver write lines without end, and about other users.
#include "quota/user_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "length.h"

namespace lrpc::nameserver {
namespace {

using namespace std::chrono_literals;

class UserLogs : public testing::Test {
 protected:
  void write(uid_t user, const std::string& line, LogLevel level = LogLevel::info) {
    log_.write(level, user, line, now_);
  }
  /// How many lines were written since the last call of this function.
  std::size_t written() { return std::exchange(lines_, {}).size(); }

  std::vector<std::string> lines_;
  decltype(NameserverOptions::log) sink_ = [this](LogLevel, std::string_view line) { lines_.emplace_back(line); };
  UserLog log_{sink_};
  UserLog::Clock::time_point now_ = UserLog::Clock::now();
};

TEST_F(UserLogs, write_what_a_user_causes_now_and_then) {
  for (int second = 0; second < 1000; ++second, now_ += 1s) {
    for (int i = 0; i < 10; ++i) write(1, "a line");
  }
  EXPECT_EQ(written(), 10'000U);
}

TEST_F(UserLogs, leave_a_flood_out_and_say_so_once_at_either_end) {
  for (int i = 0; i < 1000; ++i) write(1, "a line");
  ASSERT_EQ(lines_.size(), 201U);
  EXPECT_EQ(lines_[199], "a line");
  EXPECT_EQ(lines_[200], "too many lines about user 1: what follows is left out");
  lines_.clear();
  now_ += 9s;
  write(1, "too early");
  now_ += 1s;
  write(1, "on again");
  ASSERT_EQ(lines_.size(), 2U);
  EXPECT_EQ(lines_[0], "801 lines about user 1 were left out");
  EXPECT_EQ(lines_[1], "on again");
}

TEST_F(UserLogs, take_of_a_flood_without_end_what_was_promised) {
  for (int tick = 0; tick < 100'000; ++tick, now_ += 10ms) write(1, "a line");  // 1,000 seconds
  const std::size_t lines = written();
  EXPECT_LE(lines, 200U + 1000 * 10 + 2 * 1000 / 9);
  EXPECT_GE(lines, 9'900U);
}

TEST_F(UserLogs, write_of_others_meanwhile) {
  for (int i = 0; i < 1000; ++i) write(1, "a line");
  lines_.clear();
  write(2, "another's");
  EXPECT_EQ(lines_, std::vector<std::string>{"another's"});
}

TEST_F(UserLogs, do_not_count_what_is_for_debugging) {
  for (int i = 0; i < 1000; ++i) write(1, "a line", LogLevel::debug);
  EXPECT_EQ(written(), 1000U);
  write(1, "a line");
  EXPECT_EQ(written(), 1U);
}

TEST_F(UserLogs, count_each_level_for_itself) {
  for (int i = 0; i < 1000; ++i) write(1, "what it does all day");
  lines_.clear();
  write(1, "what it does wrong", LogLevel::warning);
  EXPECT_EQ(lines_, std::vector<std::string>{"what it does wrong"});
}

TEST_F(UserLogs, forget_users_who_have_been_quiet) {
  for (uid_t user = 0; user < 10'000; ++user, now_ += 100ms) write(user, "a line");
  EXPECT_LE(log_.size(), 256U);
}

TEST_F(UserLogs, take_of_all_users_together_what_was_promised) {
  const std::size_t seconds = testing_lrpc::long_tests() ? 200 : 50;
  for (std::size_t second = 0; second < seconds; ++second, now_ += 1s) {
    for (uid_t user = 1; user <= 1000; ++user) {
      for (int i = 0; i < 3; ++i) write(user, "a line");
    }
  }
  const std::size_t lines = written();
  // Two budgets, and two notices for each period of suppression.
  EXPECT_LE(lines, 2 * (1000 + seconds * 20 + 2 * seconds / 25 + 2));
  // One budget, except for the current period of suppression.
  EXPECT_GE(lines, 1000 + (seconds - 25) * 20);
}

TEST_F(UserLogs, write_of_others_while_many_are_loud) {
  for (const uid_t users : {2U, 10U, 40U}) {
    for (uid_t user = 1; user <= users; ++user) {
      for (int i = 0; i < 1000; ++i) write(user, "a line");
    }
    lines_.clear();
    write(100 + users, "another's");
    EXPECT_EQ(lines_, std::vector<std::string>{"another's"});
  }
}

TEST_F(UserLogs, write_of_root_whatever_all_users_do) {
  for (uid_t user = 1; user <= 1'000; ++user) {
    for (int i = 0; i < 300; ++i) write(user, "a line");
  }
  EXPECT_LE(written(), 2'002U);
  write(0, "root's");
  EXPECT_EQ(lines_, std::vector<std::string>{"root's"});
  lines_.clear();
  now_ += 25s;
  write(1, "on again");
  ASSERT_GE(lines_.size(), 2U);
  EXPECT_NE(lines_[0].find(" lines about several users were left out"), std::string::npos) << lines_[0];
  EXPECT_EQ(lines_.back(), "on again");
}

TEST_F(UserLogs, forget_those_who_were_too_loud_too_and_say_how_loud) {
  for (uid_t user = 0; user < 1'000; ++user, now_ += 15s) {
    for (int i = 0; i < 300; ++i) write(user, "a line");
  }
  EXPECT_LE(log_.size(), 256U);
  const auto told =
      std::ranges::count_if(lines_, [](const std::string& line) { return line.starts_with("100 lines"); });
  EXPECT_GE(told, 1'000 - 256);
}

TEST_F(UserLogs, remember_whoever_is_loud_now) {
  for (uid_t user = 0; user < 1'000; ++user) write(user, "a line");
  EXPECT_EQ(log_.size(), 1'000U) << "none of them has its lines back";
}

TEST_F(UserLogs, without_a_sink_do_nothing) {
  const decltype(NameserverOptions::log) none;
  UserLog silent(none);
  silent.write(LogLevel::warning, 1, "a line", now_);
  EXPECT_EQ(silent.size(), 0U);
}

}  // namespace
}  // namespace lrpc::nameserver
