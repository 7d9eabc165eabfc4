// Compares the default with the fixed gates in the same situation on the same machine, and checks its effect on others.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>

#include "length.h"
#include "situation.h"

namespace lrpc::simulated {
namespace {

const std::vector<Situation>& situations() {
  static const std::vector<Situation> all = [] {
    std::vector<Situation> list;
    const std::vector<std::pair<std::string, Pattern>> patterns{
        {"back to back", {}},
        {"thinks 1 us", {.think = us(1)}},
        {"thinks 10 us", {.think = us(10)}},
        {"thinks 100 us", {.think = us(100)}},
        {"thinks 1 ms", {.think = us(1'000)}},
        {"sleeps 100 us", {.sleep = us(100)}},
        {"sleeps 1 ms", {.sleep = us(1'000)}},
        {"procedure of 5 us", {.procedure = us(5)}},
    };
    for (const auto& [name, pattern] : patterns) {
      list.push_back({.name = name, .pattern = pattern});
      list.push_back({.name = name + ", slow wake-ups", .pattern = pattern, .costs = {.woken_far = us(40)}});
      list.push_back({.name = name + ", one processor", .processors = 1, .pattern = pattern});
      list.push_back({.name = name + ", apart", .pattern = pattern, .apart = true});
      list.push_back({.name = name + ", a hog", .pattern = pattern, .hogs = 1});
      list.push_back({.name = name + ", two hogs", .pattern = pattern, .hogs = 2});
      list.push_back({.name = name + ", a third party", .pattern = pattern, .third_party = true});
      // Without balancing, the two may share one processor for good while the poller has the other.
      list.push_back(
          {.name = name + ", two callers", .callers = 2, .pattern = pattern, .costs = {.balanced = us(4'000)}});
      list.push_back({.name = name + ", two callers on four", .processors = 4, .callers = 2, .pattern = pattern});
    }
    return list;
  }();
  return all;
}

double best_of(const Situation& at, std::initializer_list<Gate> gates) {
  double best = 1e9;
  for (const Gate gate : gates) best = std::min(best, run(at, gate).mean_us());
  return best;
}

TEST(Situations, the_default_is_near_the_best_fixed_gate) {
  // If two callers fill two processors, or a third party comes and goes, chance decides which thread runs where.
  std::string missed;
  int misses = 0;
  for (const Situation& at : situations()) {
    const double best = best_of(at, {Gate::exchange, Gate::handoff, Gate::sleep});
    const double mean = run(at, Gate::adaptive).mean_us();
    EXPECT_LE(mean, 1.5 * best + 3) << at.name;
    if (mean <= 1.25 * best + 1) continue;
    ++misses;
    missed += at.name + ": " + std::to_string(mean) + " for " + std::to_string(best) + "; ";
  }
  EXPECT_LE(misses, 4) << missed;
}

TEST(Situations, others_lose_nothing_by_it) {
  for (const Situation& at : situations()) {
    if (at.hogs == 0 && !at.third_party) continue;
    const Outcome sleeping = run(at, Gate::sleep);
    const Outcome now = run(at, Gate::adaptive);
    EXPECT_GE(now.hogs, 0.95 * sleeping.hogs) << at.name;
    EXPECT_LE(now.third_us, 1.05 * sleeping.third_us + 5) << at.name;
  }
}

TEST(Situations, it_does_not_go_to_and_fro) {
  for (const Situation& at : situations()) EXPECT_LE(run(at, Gate::adaptive).switches_a_second, 1'100) << at.name;
}

TEST(Situations, it_is_there_within_a_few_calls) {
  for (const Situation& at : situations()) {
    if (at.hogs != 0 || at.third_party || at.callers > 1) continue;
    const double settled = run(at, Gate::adaptive).mean_us();
    // In the first millisecond, or in the first ten calls if they take longer.
    const std::uint64_t first = std::max(us(1'000), 10 * (at.pattern.think + at.pattern.sleep + us(50)));
    const double before = run(at, Gate::adaptive, {0, first, first, first, first}).mean_us();
    EXPECT_LE(before, settled + 30) << at.name << ": settled it is " << settled;
  }
}

TEST(Situations, it_is_back_soon_when_a_hog_has_gone) {
  Machine machine(2, {});
  Domain domain(machine, Gate::adaptive, machine.all());
  for (int i = 0; i < 2; ++i) {
    machine.start(machine.all(), [](Thread& me) -> Life {
      co_await me.work(us(200'000));
      for (;;) co_await me.wait();
    });
  }
  domain.add_caller({}, machine.all());
  machine.run_for(us(450'000));
  domain.forget_times();
  machine.run_for(us(20'000));
  EXPECT_LE(domain.calls().mean_us(), 3.0);
}

/// As many servers as processors, each with a caller that computes between calls.
Situation servers(unsigned count, std::uint64_t think, bool lrpcd) {
  Situation at;
  at.name = std::to_string(count) + " servers, think " + std::to_string(think / kPerUs) + (lrpcd ? ", lrpcd" : "");
  at.processors = at.servers = count;
  at.pattern = {.think = think, .varies = true};
  at.lrpcd = lrpcd;
  return at;
}
constexpr Times kASecond{us(400'000), us(1'400'000), us(1'400'000), us(1'400'000), us(1'400'000)};

TEST(Situations, servers_that_lrpcd_rules_over_do_not_take_turns) {
  for (const unsigned count : {2U, 4U}) {
    for (const std::uint64_t think : {us(10), us(50), us(100), us(150)}) {
      const Situation at = servers(count, think, true);
      const Outcome now = run(at, Gate::adaptive, kASecond);
      EXPECT_LE(now.switches_a_second, 100) << at.name;
      EXPECT_LE(now.mean_us(), run(at, Gate::sleep, kASecond).mean_us() + 5) << at.name;
    }
  }
}

/// In random situations the default is near the best fixed gate on average, and rarely far above plain futexes. (The
/// exchange gate polls whatever it costs others, also when calls come slightly too rarely for that.) None of 1,830
/// situations was above the bound. One that is shows a weakness of the policy; its seed repeats it.
TEST(Situations, random_ones_too) {
  const std::uint64_t seed = testing_lrpc::test_seed();
  std::mt19937_64 random(seed);
  const auto one_of = [&](std::initializer_list<std::uint64_t> these) {
    return *(these.begin() + std::uniform_int_distribution<std::size_t>(0, these.size() - 1)(random));
  };
  const int rounds = testing_lrpc::rounds(30);
  double all = 0;
  double all_best = 0;
  int far_above = 0;
  std::string which;
  for (int i = 0; i < rounds; ++i) {
    Situation at;
    at.processors = static_cast<unsigned>(one_of({1, 2, 2, 4}));
    at.callers = static_cast<unsigned>(one_of({1, 1, 2, 3}));
    at.pattern = {.think = us(one_of({0, 0, 1, 7, 30, 120, 900})),
                  .sleep = us(one_of({0, 0, 0, 90, 700})),
                  .procedure = us(one_of({0, 0, 0, 3, 15}))};
    at.hogs = static_cast<unsigned>(one_of({0, 0, 1, 2, 4}));
    at.third_party = one_of({0, 1}) != 0;
    at.costs.woken_far = us(one_of({3, 8, 40}));
    const double futex = run(at, Gate::sleep).mean_us();
    const double best = std::min(futex, best_of(at, {Gate::exchange, Gate::handoff}));
    const Outcome now = run(at, Gate::adaptive);
    const std::string what =
        "seed " + std::to_string(seed) + ", " + std::to_string(at.processors) + " processors, " +
        std::to_string(at.callers) + " callers, think " + std::to_string(at.pattern.think / kPerUs) + ", sleep " +
        std::to_string(at.pattern.sleep / kPerUs) + ", procedure " + std::to_string(at.pattern.procedure / kPerUs) +
        ", hogs " + std::to_string(at.hogs) + (at.third_party ? ", a third party" : "") + ", far " +
        std::to_string(at.costs.woken_far / kPerUs);
    EXPECT_LE(now.mean_us(), 20 * futex + 50) << what;
    if (now.mean_us() > 6 * futex + 20) {
      ++far_above;
      which += what + ": " + std::to_string(now.mean_us()) + " for " + std::to_string(futex) + "; ";
    }
    all += std::min(now.mean_us() / best, 3.0);
    all_best += 1;
  }
  EXPECT_LE(far_above, 1 + rounds / 100) << which;
  EXPECT_LE(all, (rounds < 100 ? 1.5 : 1.35) * all_best) << "seed " << seed << "; few are more often hard ones";
}

}  // namespace
}  // namespace lrpc::simulated
