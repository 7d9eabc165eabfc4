// The floors and the naive round trips really cross to another process and back, and a parked floor uses no processor
// time.
#include "floors/floors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "floors/naive.h"

namespace lrpc::bench {
namespace {

class Crossings : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cores = Cores::find();
    ASSERT_TRUE(cores);
    cores_.emplace(*cores);
  }
  void exercise(Contender& contender, const Seat& seat) {
    const Seat before = own_seat();
    sit(seat);
    ASSERT_TRUE(contender.connect());
    for (int block = 0; block < 5; ++block) {
      contender.resume();
      contender.run(100);
      std::vector<std::uint64_t> ticks(10);
      contender.run_single(ticks);
      for (const auto one : ticks) EXPECT_GT(one, 0U);
      contender.pause();
    }
    EXPECT_TRUE(contender.health());
    sit(before);
  }
  std::optional<Cores> cores_;
};

TEST_F(Crossings, yield_floor_answers_block_after_block) {
  auto floor = make_floor(Floor::yield, *cores_);
  ASSERT_TRUE(floor);
  exercise(**floor, floor_seats(Floor::yield, *cores_).client);
}

TEST_F(Crossings, polling_floor_answers_block_after_block) {
  if (!cores_->has_two()) GTEST_SKIP() << cores_->describe();
  auto floor = make_floor(Floor::polling, *cores_);
  ASSERT_TRUE(floor);
  exercise(**floor, floor_seats(Floor::polling, *cores_).client);
}

TEST_F(Crossings, naive_ways_answer) {
  const Seats seats = cores_->seats(Placement::one_core);
  auto futex = make_naive_futex(seats);
  ASSERT_TRUE(futex);
  exercise(**futex, seats.client);
  auto pipe = make_naive_pipe(seats, {200, 200});
  ASSERT_TRUE(pipe);
  exercise(**pipe, seats.client);
  auto seqpacket = make_naive_seqpacket(seats, {200, 1});
  ASSERT_TRUE(seqpacket);
  exercise(**seqpacket, seats.client);
}

TEST_F(Crossings, a_dropped_contender_leaves_no_process_behind) {
  { ASSERT_TRUE(make_naive_futex(cores_->seats(Placement::one_core))); }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace lrpc::bench
