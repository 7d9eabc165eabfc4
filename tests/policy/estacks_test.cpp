// An E-stack whose caller's next call always comes before the E-stack parks, and other threads that need its processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "domains.h"
#include "length.h"

namespace lrpc::simulated {
namespace {

using server::EStackPolicy;

/// A caller that polls on the first processor; its E-stack and other threads on the second.
struct Beside {
  static constexpr std::uint64_t kHere = 2;
  Machine machine;
  Domain domain;
  AStack* astack = nullptr;

  explicit Beside(Gate gate, Costs costs = {}) : machine(2, costs), domain(machine, gate, kHere) {}
  void serve(std::uint64_t procedure, bool offers = true) {
    astack = &domain.add_caller({.procedure = procedure, .polls = true, .offers = offers}, 1);
  }
};

/// Draws numbers, and reports them in a failure.
class Drawn {
 public:
  explicit Drawn(std::mt19937_64& random) : random_(random) {}
  std::uint64_t between(const std::string& name, std::uint64_t least, std::uint64_t most) {
    const std::uint64_t drawn = std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
    what_ += ", " + name + " " + std::to_string(drawn);
    return drawn;
  }
  [[nodiscard]] const std::string& what() const { return what_; }

 private:
  std::mt19937_64& random_;
  std::string what_ = "seed " + std::to_string(testing_lrpc::test_seed());
};

/// Tolerance for what is not counted: a few switches, and the call that is executed.
constexpr std::uint64_t slack(std::uint64_t procedure) { return us(5) + 2 * procedure; }

TEST(BusyEStack, keeps_a_third_party_waiting_for_100_us_or_as_long_as_that_party_takes) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  for (int i = testing_lrpc::rounds(40); i > 0; --i) {
    Drawn drawn(random);
    const std::uint64_t procedure = us(drawn.between("procedure", 0, 15));
    const std::uint64_t work = us(drawn.between("work", 10, 900));
    const std::uint64_t period = work * drawn.between("period in hundredths of it", 250, 900) / 100;
    Beside beside(Gate::sleep);
    Calls done;
    Thread& third = beside.machine.start(
        Beside::kHere, [&](Thread& me) { return third_party(me, beside.machine, period, work, done); });
    beside.serve(procedure);
    beside.machine.run_for(us(200'000));
    EXPECT_LE(third.longest_wait(), std::max(us(EStackPolicy::kYieldUs), work) + slack(procedure)) << drawn.what();
  }
}

TEST(BusyEStack, lets_the_poller_in_that_is_to_take_its_calls) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  for (int i = testing_lrpc::rounds(20); i > 0; --i) {
    Drawn drawn(random);
    const std::uint64_t procedure = us(drawn.between("procedure", 0, 15));
    Beside beside(Gate::adaptive);
    beside.serve(procedure);
    beside.machine.run_for(us(100'000));
    EXPECT_LE(beside.domain.poller()->longest_wait(), us(EStackPolicy::kYieldUs) + slack(procedure)) << drawn.what();
  }
}

/// Beside hogs, and a third party that preempts the hogs.
TEST(BusyEStack, loses_less_than_half_of_its_time_by_its_offers) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  for (int i = testing_lrpc::rounds(30); i > 0; --i) {
    Drawn drawn(random);
    const std::uint64_t procedure = us(drawn.between("procedure", 0, 15));
    const std::uint64_t slice = us(drawn.between("slice", 700, 6'000));
    const std::uint64_t hogs = drawn.between("hogs", 1, 3);
    const std::uint64_t work = us(drawn.between("work", 1, 200));
    constexpr std::uint64_t kTime = us(300'000);
    const auto runs = [&](bool offers) {
      Beside beside(Gate::sleep, {.slice = slice});
      Calls done;
      for (std::uint64_t n = 0; n < hogs; ++n) beside.machine.start(Beside::kHere, hog);
      beside.machine.start(Beside::kHere,
                           [&](Thread& me) { return third_party(me, beside.machine, us(1'000), work, done); });
      beside.serve(procedure, offers);
      beside.machine.run_for(kTime);
      return beside.astack->estack->ran();
    };
    EXPECT_GE(runs(true), std::min(runs(false), kTime / 2) / 2) << drawn.what();
  }
}

TEST(BusyEStack, offers_its_processor_ever_more_rarely_to_a_hog) {
  Beside beside(Gate::sleep);
  beside.machine.start(Beside::kHere, hog);
  beside.serve(0);
  beside.machine.run_for(us(500'000));
  EXPECT_GE(beside.astack->yields, 2U);
  EXPECT_LE(beside.astack->yields, 5U) << "after 60 ms, 120 ms, 240 ms";
}

}  // namespace
}  // namespace lrpc::simulated
