// The processes of the matrix and of the crowd make calls, count them, and leave nothing behind.
#include "calls/team.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "calls/crowd.h"
#include "calls/lrpc_domains.h"

namespace lrpc::bench {
namespace {

using std::chrono::milliseconds;

class Teams : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cores = Cores::find();
    ASSERT_TRUE(cores);
    cores_.emplace(*cores);
  }
  std::optional<Cores> cores_;
  TickClock clock_ = TickClock::calibrate();
};

TEST_F(Teams, of_every_strategy_count_the_calls_of_their_slices) {
  const Surroundings nothing;
  for (const Strategy strategy :
       {Strategy::exchange, Strategy::handoff, Strategy::sleep, Strategy::adaptive, Strategy::plain_futex}) {
    auto team = Team::create(strategy, {.clients = 2}, *cores_, nothing, clock_);
    ASSERT_TRUE(team) << team.error().message();
    ASSERT_TRUE((*team)->run({.untimed = milliseconds(20), .most_untimed = 100}));
    EXPECT_EQ((*team)->counted(Book::judging).count(), 0U);
    ASSERT_TRUE((*team)->run({.timed = milliseconds(5), .book = Book::judging}));
    EXPECT_GE((*team)->counted(Book::judging).count(), 2U) << name(strategy);
    EXPECT_GT((*team)->counted(Book::judging).mean(), 0);
    EXPECT_EQ((*team)->counted(Book::choosing).count(), 0U);
  }
}

TEST_F(Teams, sleep_between_their_slices) {
  const Surroundings nothing;
  auto team = Team::create(Strategy::adaptive, {.pace = Pace::apart_20us}, *cores_, nothing, clock_);
  ASSERT_TRUE(team);
  ASSERT_TRUE((*team)->run({.timed = milliseconds(5), .book = Book::judging}));
  const auto calls = (*team)->counted(Book::judging).count();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ((*team)->counted(Book::judging).count(), calls);
}

TEST_F(Teams, a_group_is_gone_with_its_processes) {
  const Cell cell{.load = Load::hog_in_other_group};
  std::filesystem::path path;
  {
    auto around = Surroundings::create(cell, *cores_);
    if (!around) GTEST_SKIP() << around.error().message();
    for (const char* root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"}) {
      const auto candidate = std::filesystem::path(root) / ("lrpc-bench-" + std::to_string(::getpid()) + "-hog");
      if (std::filesystem::exists(candidate)) path = candidate;
    }
    EXPECT_FALSE(path.empty());
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

TEST_F(Teams, a_crowd_binds_calls_and_says_why_it_is_smaller_than_asked) {
  ServerOptions options;
  options.max_bindings = 7;
  auto domains = LrpcDomains::start(cores_->seats(Placement::unpinned).server, options);
  ASSERT_TRUE(domains) << domains.error().message();
  auto crowd = Crowd::create((*domains)->import_options(Gate::adaptive), 10);
  ASSERT_TRUE(crowd);
  ASSERT_TRUE((*crowd)->bind_up_to(5));
  EXPECT_EQ((*crowd)->bindings(), 5U);
  EXPECT_EQ((*crowd)->why_not(), "");
  EXPECT_TRUE((*crowd)->call_new_ones());
  ASSERT_TRUE((*crowd)->bind_up_to(10));
  EXPECT_EQ((*crowd)->bindings(), 7U);
  EXPECT_NE((*crowd)->why_not(), "");
  EXPECT_TRUE((*crowd)->call_new_ones());
}

}  // namespace
}  // namespace lrpc::bench
