// What `lrpc run` prints about refused system calls of a program, also if there are very many different ones.
#include "refusal_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lrpc::tools {
namespace {

class RefusalReports : public testing::Test {
 protected:
  void refused(const std::string& name) { report_.refused({.pid = 7, .number = 0, .name = name}); }

  std::vector<std::string> lines_;
  RefusalReport report_{[this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(RefusalReports, name_each_call_once_and_say_at_the_end_how_often_it_was) {
  refused("open");
  refused("socket");
  refused("open");
  EXPECT_EQ(lines_, (std::vector<std::string>{"refused: open (process 7)", "refused: socket (process 7)"}));
  lines_.clear();
  report_.finish();
  EXPECT_EQ(lines_, std::vector<std::string>{"refused: open, 2 times in all"});
}

TEST_F(RefusalReports, list_a_bounded_number_of_names_and_count_the_others) {
  constexpr std::size_t kCalls = 100'000;
  for (std::size_t i = 0; i < kCalls; ++i) refused("system call " + std::to_string(100'000 + i));
  refused("system call 100000");
  ASSERT_EQ(lines_.size(), RefusalReport::kMaxNames + 1);
  EXPECT_EQ(lines_.back(), "refused: more than 64 different system calls; the others are not listed");
  lines_.clear();
  report_.finish();
  EXPECT_EQ(lines_, (std::vector<std::string>{"refused: system call 100000, 2 times in all",
                                              "refused: 99936 more calls, which were not listed"}));
}

}  // namespace
}  // namespace lrpc::tools
