#include "oracle.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace lrpc::simulated {
namespace {

constexpr std::uint64_t kWindow = us(10'000);

/// How each fixed gate did in the same situation. A gate is no choice if hogs got less than 90 % of what they get
/// beside plain futexes.
class Oracle {
 public:
  Oracle(const Situation& at, const Times& times)
      : outcomes_{run(at, Gate::exchange, times), run(at, Gate::handoff, times), run(at, Gate::sleep, times)} {}

  [[nodiscard]] double best_us(std::uint64_t from, std::uint64_t to) const {
    double best = 1e9;
    for (const Outcome& each : outcomes_) {
      if (each.hogs >= kHogsKeep * futexes().hogs) best = std::min(best, each.history.between(from, to).mean_us());
    }
    return best;
  }
  [[nodiscard]] const Outcome& futexes() const { return outcomes_.back(); }

 private:
  static constexpr double kHogsKeep = 0.9;

  std::array<Outcome, 3> outcomes_;
};

/// Up to half more and one microsecond: smaller differences do not come from the gate.
bool is_good(const Calls& calls, double oracle_us) {
  return calls.count == 0 || calls.mean_us() <= 1.5 * oracle_us + 1;
}

/// The calls and the time until a whole window is good.
Regret::Until until_good(const History& history, double oracle_us, std::uint64_t from, std::uint64_t to) {
  std::uint64_t at = from;
  while (at < to && !is_good(history.between(at, at + kWindow), oracle_us)) at += History::kBin;
  return {.calls = history.between(from, at).count, .time = at - from};
}

}  // namespace

Regret judge(const Situation& at) {
  const Times times = Times::of(at);
  const Outcome outcome = run(at, Gate::adaptive, times);
  const Oracle oracle(at, times);
  const History& history = outcome.history;
  Regret regret;

  struct Part {
    std::uint64_t from;
    std::uint64_t to;
    bool settled;
  };
  double took = 0;
  double would_take = 0;
  std::uint64_t count = 0;
  for (const Part& part : {Part{times.settled, times.disturbed, true}, Part{times.disturbed, times.ended, false},
                           Part{times.ended, times.recovered, false}, Part{times.recovered, times.end, true}}) {
    const Calls calls = history.between(part.from, part.to);
    const double best = oracle.best_us(part.from, part.to);
    if (calls.count == 0 || best >= 1e9) continue;
    count += calls.count;
    took += calls.mean_us() * static_cast<double>(calls.count);
    would_take += best * static_cast<double>(calls.count);
    if (!part.settled) continue;
    for (std::uint64_t from = part.from; from + kWindow <= part.to; from += kWindow) {
      ++regret.windows;
      // Compares with the oracle in the part or in this window, whichever is slower: a window that is hard for all, or
      // in which one gate is lucky, proves nothing.
      const double best_then = oracle.best_us(from, from + kWindow);
      const double allowed = best_then >= 1e9 ? best : std::max(best, best_then);
      if (!is_good(history.between(from, from + kWindow), allowed)) ++regret.bad_windows;
    }
  }
  if (count != 0) {
    regret.mean_us = took / static_cast<double>(count);
    regret.oracle_us = would_take / static_cast<double>(count);
    regret.ratio = regret.mean_us / regret.oracle_us;
  }
  const double before = oracle.best_us(times.settled, times.disturbed);
  regret.begun = until_good(history, before, 0, times.disturbed - kWindow);
  if (times.end > times.ended) {
    const double after = oracle.best_us(times.recovered, times.end);
    regret.recovered = until_good(history, after, times.ended, times.end - kWindow);
  }
  regret.switches_a_second = outcome.switches_a_second;
  regret.longest = std::max(history.longest(), outcome.stuck);
  regret.longest_futex = std::max(oracle.futexes().history.longest(), oracle.futexes().stuck);
  regret.hogs = outcome.hogs;
  regret.hogs_futex = oracle.futexes().hogs;
  return regret;
}

}  // namespace lrpc::simulated
