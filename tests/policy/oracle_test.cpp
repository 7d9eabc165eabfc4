// Compares the default with an oracle that knows the future, in random situations.
#include "oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "length.h"

namespace lrpc::simulated {
namespace {

/// Bounds over all situations of a run.
struct Bounds {
  double ratio;        ///< Mean of Regret::ratio, each up to kWorst.
  double bad_windows;  ///< Share of all windows.
  double far_above;    ///< Share of situations with over kWorst times, and 20 us more than, the oracle.
  double slow;         ///< Share of situations that needed over kSoon calls to settle or to recover.
  double hogs;         ///< Lower bound: mean of what hogs got, divided by what they get beside plain futexes.
};
constexpr double kWorst = 5;
constexpr std::uint64_t kSoon = 1'000;
/// 600 situations gave 1.22, 0.095, 0.018, 0.083 and 0.93. Samples drawn again from them (20,000 of 60, 300 of 2,400)
/// all stayed within these bounds. Small samples scatter more than large ones.
constexpr Bounds kShort{.ratio = 1.85, .bad_windows = 0.27, .far_above = 0.15, .slow = 0.28, .hogs = 0.68};
constexpr Bounds kLong{.ratio = 1.32, .bad_windows = 0.13, .far_above = 0.035, .slow = 0.115, .hogs = 0.90};
/// The bound for one situation. The worst of 600 was 8,900: servers without lrpcd displace each other's pollers.
constexpr double kSwitchesASecond = 25'000;
/// No call may take longer than with plain futexes plus this. A group that uses up its quota is stopped for most of a
/// period. Real-time callers who poll keep all others from running.
std::uint64_t patience(const Situation& at) {
  if (at.pattern.realtime) return kForEver / 2;
  return at.disturbance.lasts + (at.quota == Situation::Quota::none ? us(40'000) : us(250'000));
}

struct Judged {
  std::uint64_t seed;
  Regret regret;
  /// Its figures, and how to repeat it.
  [[nodiscard]] std::string what() const {
    char figures[200];
    std::snprintf(figures, sizeof figures,
                  "%.2f us (oracle %.2f), bad windows %ju of %ju, settled after %ju calls, recovered after %ju",
                  regret.mean_us, regret.oracle_us, regret.bad_windows, regret.windows, regret.begun.calls,
                  regret.recovered.calls);
    return "\n  " + Situation::draw(seed).what() + ": " + figures + "\n  LRPC_TEST_SITUATION=" + std::to_string(seed) +
           " " + program_invocation_name + " --gtest_filter='Oracle.*by_chance*'";
  }
};

class Judgements {
 public:
  void judge_one(std::uint64_t seed) {
    const Situation at = Situation::draw(seed);
    const Judged& one = all_.emplace_back(Judged{seed, judge(at)});
    EXPECT_LE(one.regret.longest, one.regret.longest_futex + patience(at)) << "somebody starves" << one.what();
    EXPECT_LE(one.regret.switches_a_second, kSwitchesASecond) << one.what();
  }
  void expect_within(const Bounds& bounds) {
    const double ratio = mean([](const Regret& one) { return std::min(one.ratio, kWorst); });
    double windows = 0;
    double bad = 0;
    double hogs = 0;
    double beside_hogs = 0;
    for (const Judged& one : all_) {
      windows += static_cast<double>(one.regret.windows);
      bad += static_cast<double>(one.regret.bad_windows);
      if (one.regret.hogs_futex < 0.05) continue;  // beside futexes the hogs starved
      hogs += one.regret.hogs / one.regret.hogs_futex;
      ++beside_hogs;
    }
    const double far_above =
        mean([](const Regret& one) { return one.ratio > kWorst && one.mean_us > one.oracle_us + 20 ? 1.0 : 0.0; });
    const double slow =
        mean([](const Regret& one) { return std::max(one.begun.calls, one.recovered.calls) > kSoon ? 1.0 : 0.0; });
    const double kept = beside_hogs == 0 ? 1 : hogs / beside_hogs;
    std::fprintf(stderr, "%zu situations: regret %.3f, bad windows %.4f, far above %.4f, slow %.4f, hogs keep %.3f\n",
                 all_.size(), ratio, bad / windows, far_above, slow, kept);
    EXPECT_LE(ratio, bounds.ratio) << worst([](const Regret& one) { return one.ratio; });
    EXPECT_LE(bad / windows, bounds.bad_windows)
        << worst([](const Regret& one) { return static_cast<double>(one.bad_windows); });
    EXPECT_LE(far_above, bounds.far_above) << worst([](const Regret& one) { return one.ratio; });
    EXPECT_LE(slow, bounds.slow) << worst(
        [](const Regret& one) { return static_cast<double>(std::max(one.begun.calls, one.recovered.calls)); });
    EXPECT_GE(kept, bounds.hogs) << worst([](const Regret& one) { return one.hogs_futex - one.hogs; });
  }
  void print() const {
    for (const Judged& one : all_) std::fprintf(stderr, "%s\n", one.what().c_str());
  }

 private:
  template <class Of>
  [[nodiscard]] double mean(Of&& of) const {
    double all = 0;
    for (const Judged& one : all_) all += of(one.regret);
    return all / static_cast<double>(all_.size());
  }
  template <class By>
  [[nodiscard]] std::string worst(By&& by) {
    std::ranges::sort(all_, std::ranges::greater(), [&](const Judged& one) { return by(one.regret); });
    std::string text = "the worst are:";
    for (std::size_t i = 0; i < std::min<std::size_t>(all_.size(), 4); ++i) text += all_[i].what();
    return text;
  }

  std::vector<Judged> all_;
};

TEST(Oracle, is_hardly_better_than_the_default_in_situations_by_chance) {
  Judgements judgements;
  if (const char* const one = std::getenv("LRPC_TEST_SITUATION"); one != nullptr) {
    judgements.judge_one(std::strtoull(one, nullptr, 0));
    return judgements.print();
  }
  // The long form runs thousands.
  const int rounds = testing_lrpc::long_tests() ? 2'400 : 60;
  for (int i = 0; i < rounds; ++i)
    judgements.judge_one(testing_lrpc::test_seed() * 10'000 + static_cast<std::uint64_t>(i));
  judgements.expect_within(testing_lrpc::long_tests() ? kLong : kShort);
}

/// When the host gives processors back, the default must recover soon.
TEST(Oracle, is_not_better_for_long_once_processors_are_back) {
  using Kind = Disturbance::Kind;
  for (const Kind kind : {Kind::machine_frozen, Kind::processor_frozen, Kind::server_stopped, Kind::client_stopped}) {
    for (const bool steal_clock : {true, false}) {
      for (const std::uint64_t think : {us(0), us(10), us(100)}) {
        for (const std::uint64_t lasts : {us(300), us(40'000)}) {
          Situation at;
          at.pattern = {.think = think, .varies = true};
          at.costs.steal_clock = steal_clock;
          at.disturbance = {.kind = kind, .processor = 1, .lasts = lasts};
          EXPECT_LE(judge(at).recovered.time, us(5'000)) << at.what();
        }
      }
    }
  }
}

}  // namespace
}  // namespace lrpc::simulated
