// What a user gets without choosing a gate or pinning anything, compared with what the best fixed gate would have
// given. Every run has new processes; the situations are all that we could think of.
#include "default.h"

#include <fmt/format.h>

#include "comparison.h"
#include "core/interrupt.h"
#include "report/strips.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

/// The gates alternate, so that the host influences all alike.
Result<AllRuns> run_all(Session& session, const Situation& situation, int rounds) {
  const auto length = session.quick() ? 250ms : 300ms;
  AllRuns all;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (interrupted()) return Error{Errc::call_aborted, "interrupted"};
      auto run = run_fresh(situation, kDefaultAndFixed[i].gate, session.cores(), session.clock(), length);
      if (!run) return run.error();
      all[i].runs.push_back(std::move(*run));
    }
  }
  return all;
}

struct Shown {
  std::vector<Strip> strips;
  int situations = 0;
  int missed = 0;
};

void show(Session& session, const Table& table, const Situation& situation, const AllRuns& all, Shown& shown) {
  const Comparison c = compare(situation, all, session.clock());
  ++shown.situations;
  shown.missed += c.missed.empty() ? 0 : 1;
  table.print({situation.name, number(c.ours.median), number(c.ours.mean), number(c.worst_mean), number(c.ours.p99),
               number(c.ours.max / 1e3), std::string(kDefaultAndFixed[c.best].name), number(c.fixed.median),
               ratio(c.ours.median / c.fixed.median), ratio(c.mean_ratio), ratio(c.ours.p99 / c.fixed.p99),
               number(c.bad_share), number(c.worst_bad_share), fmt::format("{}/{}", c.bad_runs, c.best_bad_runs),
               number(c.first_good), c.others ? ratio(c.others) : "", c.missed});
  for (std::size_t i = 0; i < all.size(); ++i) {
    session.emit_json({.bench = "default",
                       .gate = name_of(kDefaultAndFixed[i].gate),
                       .placement = "unpinned",
                       .test = situation.name,
                       .figures = all[i].timing(session.clock())});
  }
  for (std::size_t i = 0; i < all.front().runs.size(); ++i) {
    Strip strip{.label = i == 0 ? situation.name : "", .times = all.front().runs[i].windows};
    for (double& time : strip.times) time /= c.good;  // 1: just good
    shown.strips.push_back(std::move(strip));
  }
}

void run(Session& session, const std::vector<Situation>& situations, int rounds) {
  print_intro(
      "The default: fresh processes, nothing chosen, nothing pinned; Null, ns",
      fmt::format("Medians over the runs; worst: the worst run's. best: the fixed gate (exchange, handoff, sleep) with "
                  "the lowest median in the same minutes; x: to it (bars: median {:g}, p99 {:g}), the mean to the "
                  "lowest of their means. bad: windows of 10 ms whose median is over {:g} times the best's; bad runs: "
                  "how many of the default's and of the best's have more than {:g} % of them; first: when the first "
                  "good one began. others: what hogs get, and how long a third party takes for its "
                  "work, or a build for a file, to the same beside callers that sleep (`Gate::sleep`). missed: these "
                  "bars, and those of bench/README.md.",
                  kMedianBar, kP99Bar, kGoodFactor, kBadShareBar));
  const Table table{{"situation", -kLongestName},
                    {"median", 8},
                    {"mean", 8},
                    {"worst", 8},
                    {"p99", 8},
                    {"max us", 7},
                    {"best", -8},
                    {"median", 8},
                    {"x median", 8},
                    {"x mean", 7},
                    {"x p99", 6},
                    {"bad %", 6},
                    {"worst", 6},
                    {"bad runs", 8},
                    {"first ms", 8},
                    {"others", 7},
                    {"missed", -8}};
  Shown shown;
  for (const Situation& situation : situations) {
    if (interrupted()) return;
    if (const auto why = obstacle(situation, session.cores().count())) {
      print_note(fmt::format("skipped: {}: {}", situation.name, *why));
      continue;
    }
    auto all = run_all(session, situation, rounds);
    if (interrupted()) return;
    if (!all && (all.code() == Errc::not_permitted || all.code() == Errc::not_supported)) {
      print_note(fmt::format("skipped: {}: {}", situation.name, all.error().message()));
      continue;
    }
    if (session.check(all, situation.name)) show(session, table, situation, *all, shown);
  }
  fmt::print("\n");
  print_note(
      fmt::format("{} of {} situations are within all their bars.", shown.situations - shown.missed, shown.situations));
  session.draw("default", strips_svg("The default gate, a strip a run, 10 ms a square; green: as the best fixed gate",
                                     shown.strips, 1));
}

}  // namespace

void default_choice(Session& session) {
  const std::string& filter = session.filter().test;
  std::vector<Situation> own_tables{{.name = kTwoClients}, {.name = kShortLived}};
  // A situation that is named runs even in a quick run.
  auto wanted = chosen(session.quick() && filter.empty() ? plainest() : situations(), filter);
  auto tables = chosen(std::move(own_tables), filter);
  if (!wanted || !tables) return session.fail(wanted.error().message());
  if (wanted->empty() && tables->empty()) return session.fail(fmt::format("no situation is called '{}'", filter));
  const int rounds = session.quick() ? 3 : 20;
  if (!wanted->empty()) run(session, *wanted, rounds);
  for (const Situation& table : *tables) {
    if (interrupted()) return;
    table.name == kTwoClients ? two_clients(session, rounds) : short_lived(session, rounds);
  }
}

void default_in_brief(Session& session) {
  const auto wanted = chosen(plainest(), session.filter().test);
  if (wanted && !wanted->empty()) run(session, *wanted, session.quick() ? 3 : 5);
}

}  // namespace lrpc::bench
