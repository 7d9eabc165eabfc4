#include "core/runner.h"

#include <gtest/gtest.h>

#include <string>

#include "core/measure.h"
#include "eventually.h"

namespace lrpc::bench {
namespace {

/// Each call burns a fixed number of ticks. resume() is recorded in `journal`.
class FakeContender final : public Contender {
 public:
  FakeContender(char letter, std::uint64_t ticks, std::string& journal)
      : letter_(letter), ticks_(ticks), journal_(journal) {}
  void resume() override {
    awake_ = true;
    journal_ += letter_;
  }
  void pause() override { awake_ = false; }
  void run(std::uint64_t count) override {
    ran_asleep_ |= !awake_;
    for (std::uint64_t i = 0; i < count; ++i) burn();
  }
  void run_single(std::span<std::uint64_t> ticks) override {
    for (auto& one : ticks) {
      const auto before = ticks_begin();
      burn();
      one = ticks_end() - before;
    }
  }
  [[nodiscard]] bool awake() const { return awake_; }
  [[nodiscard]] bool ran_asleep() const { return ran_asleep_; }

 private:
  void burn() const {
    const auto until = ticks_begin() + ticks_;
    while (ticks_begin() < until) {
    }
  }
  char letter_;
  std::uint64_t ticks_;
  std::string& journal_;
  bool awake_ = false;
  bool ran_asleep_ = false;
};

class PairedRunTest : public ::testing::Test {
 protected:
  static RunnerOptions small() {
    RunnerOptions options;
    options.block = std::chrono::microseconds(100);
    options.warm_up = std::chrono::microseconds(10);
    options.singles = std::chrono::microseconds(50);
    options.first_warm_up_calls = 100;
    return options;
  }
  std::string journal_;
};

TEST_F(PairedRunTest, call_and_floor_blocks_alternate_and_begin_and_end_with_a_floor_block) {
  FakeContender call('c', 2000, journal_);
  FakeContender floor('f', 1000, journal_);
  PairedRun run({call, own_seat()}, {floor, own_seat()}, TickClock::calibrate(), small());
  run.start();
  journal_.clear();
  for (int i = 0; i < 3; ++i) run.step();
  EXPECT_EQ(journal_, "cfcfcf");
  const Samples samples = std::move(run).take();
  EXPECT_EQ(samples.call_blocks.size(), 3U);
  EXPECT_EQ(samples.floor_blocks.size(), 4U);
  EXPECT_FALSE(samples.single_calls.empty());
}

TEST_F(PairedRunTest, only_a_resumed_contender_runs_and_both_are_paused_after_a_step) {
  FakeContender call('c', 2000, journal_);
  FakeContender floor('f', 1000, journal_);
  PairedRun run({call, own_seat()}, {floor, own_seat()}, TickClock::calibrate(), small());
  run.start();
  run.step();
  EXPECT_FALSE(call.awake());
  EXPECT_FALSE(floor.awake());
  EXPECT_FALSE(call.ran_asleep());
  EXPECT_FALSE(floor.ran_asleep());
}

TEST_F(PairedRunTest, the_ratio_of_a_contender_that_does_twice_the_work_is_about_two) {
  FakeContender call('c', 20'000, journal_);
  FakeContender floor('f', 10'000, journal_);
  double ratio = 0;
  EXPECT_TRUE(testing_lrpc::eventually([&] {  // a run that is disturbed too much has another result
    PairedRun run({call, own_seat()}, {floor, own_seat()}, TickClock::calibrate(), small());
    run.start();
    for (int i = 0; i < 21; ++i) run.step();
    const Figures figures = boil_down(std::move(run).take());
    EXPECT_LE(figures.min, figures.p99);
    EXPECT_LE(figures.p99, figures.max);
    ratio = figures.ratio.value();
    return ratio > 1.5 && ratio < 2.7;
  })) << ratio;
}

}  // namespace
}  // namespace lrpc::bench
