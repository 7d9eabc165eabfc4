// The scenario matrix: the adaptive gate against each fixed strategy, under various loads of the machine.
#include <fmt/format.h>

#include <algorithm>

#include "calls/team.h"
#include "core/interrupt.h"
#include "core/judge.h"
#include "report/statistics.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using std::chrono::milliseconds;

constexpr int kRounds = 5;
constexpr int kChoosingRounds = 2;
constexpr std::uint64_t kWarmUpCalls = 10'000;
constexpr Strategy kFixed[] = {Strategy::exchange, Strategy::handoff, Strategy::sleep};
/// With at most this many cells, each strategy gets a row of its own.
constexpr std::size_t kFewCells = 6;

/// How long things take; less in a quick run. A caller that sleeps between calls makes few of them, so its slices are
/// twice as long.
struct Lengths {
  milliseconds warm_up;           ///< Upper bound, for the fixed strategies, which have little to learn.
  milliseconds adaptive_warm_up;  ///< Upper bound, for the adaptive gate, which learns.
  milliseconds slice;

  static Lengths of(const Cell& cell, bool quick) {
    const int more = cell.pace == Pace::apart_1ms ? 2 : 1;
    return quick ? Lengths{milliseconds(100), milliseconds(400), milliseconds(40) * more}
                 : Lengths{milliseconds(200), milliseconds(1000), milliseconds(100) * more};
  }
};

/// One strategy's results in a cell.
struct CellResult {
  Strategy strategy;
  Figures choosing;
  Figures judging;
};

std::vector<Strategy> strategies_of(const Cell& cell) {
  std::vector<Strategy> strategies(std::begin(kFixed), std::end(kFixed));
  strategies.push_back(Strategy::adaptive);
  if (has_hog(cell.load)) strategies.push_back(Strategy::plain_futex);
  return strategies;
}

Result<std::vector<CellResult>> run_cell(Session& session, const Cell& cell) {
  const Lengths lengths = Lengths::of(cell, session.quick());
  auto around = Surroundings::create(cell, session.cores());
  if (!around) return around.error();
  std::vector<std::unique_ptr<Team>> teams;
  for (const Strategy strategy : strategies_of(cell)) {
    auto team = Team::create(strategy, cell, session.cores(), *around, session.clock());
    if (!team) return team.error();
    const bool learns = strategy == Strategy::adaptive;
    const Slice warm_up{.untimed = learns ? lengths.adaptive_warm_up : lengths.warm_up, .most_untimed = kWarmUpCalls};
    if (auto warm = (*team)->run(warm_up); !warm) return warm.error();
    teams.push_back(std::move(*team));
  }
  for (int round = 0; round < kRounds; ++round) {
    const Slice slice{.untimed = lengths.slice / 8,
                      .timed = lengths.slice,
                      .book = round < kChoosingRounds ? Book::choosing : Book::judging};
    for (auto& team : teams)
      if (auto ran = team->run(slice); !ran) return ran.error();
    std::rotate(teams.begin(), teams.begin() + 1, teams.end());  // no team always runs after the same one
  }
  std::vector<CellResult> results;
  for (const auto& team : teams)
    results.push_back({team->strategy(), figures_of(team->counted(Book::choosing), session.clock().ns(1)),
                       figures_of(team->counted(Book::judging), session.clock().ns(1))});
  std::sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.strategy < b.strategy; });
  return results;
}

const CellResult& find(const std::vector<CellResult>& results, Strategy strategy) {
  return *std::find_if(results.begin(), results.end(), [&](const auto& r) { return r.strategy == strategy; });
}

const CellResult& best_fixed(const std::vector<CellResult>& results) {
  std::vector<double> medians;
  for (const Strategy strategy : kFixed) medians.push_back(find(results, strategy).choosing.median);
  return find(results, kFixed[index_of_best(medians)]);
}

std::vector<std::string> cell_names(const Cell& cell) {
  return {std::string(name(cell.load)), std::string(name(cell.placement)), std::string(name(cell.pace)),
          fmt::format("{}", cell.clients)};
}

void print_cell(const Table& table, const Cell& cell, const std::vector<CellResult>& results, const Verdict& verdict) {
  const CellResult& best = best_fixed(results);
  const CellResult& adaptive = find(results, Strategy::adaptive);
  std::vector<std::string> cells = cell_names(cell);
  for (const std::string& text :
       {std::string(name(best.strategy)), number(best.judging.median), number(best.judging.p99),
        number(adaptive.judging.median), number(adaptive.judging.p99), number(adaptive.judging.mean),
        ratio(verdict.median_ratio), ratio(verdict.p99_ratio)})
    cells.push_back(text);
  if (has_hog(cell.load)) {
    const Figures& plain = find(results, Strategy::plain_futex).judging;
    for (const std::string& text :
         {number(plain.mean), number(plain.p99), ratio(verdict.plain_mean_ratio), ratio(verdict.plain_p99_ratio)})
      cells.push_back(text);
  } else {
    cells.resize(cells.size() + 4);
  }
  cells.push_back(verdict.missed());
  table.print(cells);
}

/// Prints each strategy's own figures, below the cell's row.
void print_strategies(const std::vector<CellResult>& results) {
  for (const auto& result : results) {
    const Figures& t = result.judging;
    fmt::print("    {:<9} median {:>9}  p99 {:>10}  mean {:>10}  calls {:>8}   (rounds 1 and 2: median {:>9})\n",
               name(result.strategy), number(t.median), number(t.p99), number(t.mean), t.calls,
               number(result.choosing.median));
  }
}

void emit_json(Session& session, const Cell& cell, const std::vector<CellResult>& results) {
  const Figures& best = best_fixed(results).judging;
  for (const auto& result : results) {
    const bool ours = result.strategy != Strategy::plain_futex;
    Row row{.bench = "matrix",
            .system = ours ? "lrpc" : "futex",
            .gate = ours ? name(result.strategy) : "none",
            .placement = name(cell.placement),
            .test = fmt::format("{}/{}/{}", name(cell.load), name(cell.pace), cell.clients)};
    row.figures = result.judging;
    row.figures.ratio = result.judging.median / best.median;
    session.emit_json(row);
  }
}

void matrix_cells(Session& session) {
  print_intro(
      "The scenario matrix: Null, ns, the adaptive choice against the best fixed strategy",
      fmt::format(
          "best: the fixed strategy (exchange, handoff, sleep) with the lowest median in rounds 1 and 2; its figures "
          "and all others are of rounds 3 to 5. x: adaptive's to the best's (bars: median {:g}, p99 {:g}), and with "
          "hogs to plain futexes' (bars: mean {:g}, p99 {:g}). Hogs: one-hog and other-group have one, on the client's "
          "processor where it is pinned; every-core one pinned to each. weights: client in a control group of four "
          "times the server's weight. fifo: the client's thread is SCHED_FIFO.",
          kMedianBar, kP99Bar, kPlainMeanBar, kPlainP99Bar));
  const auto cells = cells_of(session.filter().cells(), session.quick(), session.cores().has_two());
  if (cells.empty()) return print_note("No cell matches.");
  const Table table{{"load", -11},   {"placement", -9}, {"pace", -12},      {"clients", 7}, {"best", -8},
                    {"median", 8},   {"p99", 9},        {"adaptive", 8},    {"p99", 9},     {"mean", 8},
                    {"x median", 8}, {"x p99", 7},      {"futex mean", 10}, {"p99", 9},     {"x mean", 7},
                    {"x p99", 7},    {"missed", -10}};
  std::vector<JudgedCell> judged;
  std::vector<std::pair<Load, std::string>> skipped;
  for (const Cell& cell : cells) {
    if (interrupted()) return;
    const auto cannot =
        std::find_if(skipped.begin(), skipped.end(), [&](const auto& s) { return s.first == cell.load; });
    if (cannot != skipped.end()) continue;
    auto results = run_cell(session, cell);
    if (interrupted()) return;
    if (!results && (results.code() == Errc::not_supported || results.code() == Errc::system_error)) {
      skipped.emplace_back(cell.load, results.error().message());
      continue;
    }
    if (!session.check(results, name(cell))) continue;
    std::optional<Figures> plain;
    if (has_hog(cell.load)) plain = find(*results, Strategy::plain_futex).judging;
    const Verdict verdict = judge(find(*results, Strategy::adaptive).judging, best_fixed(*results).judging, plain);
    print_cell(table, cell, *results, verdict);
    if (cells.size() <= kFewCells) print_strategies(*results);
    emit_json(session, cell, *results);
    judged.push_back({name(cell), verdict});
  }
  fmt::print("\n");
  for (const auto& [load, why] : skipped) print_note(fmt::format("skipped: all {} cells: {}.", name(load), why));
  for (const auto& line : summary(judged, 5)) print_note(line);
}

}  // namespace

void matrix(Session& session) {
  ControlGroup::sweep();
  if (session.filter().load != kThirdParty) matrix_cells(session);
  const bool wants_third = session.filter().load.empty() || session.filter().load == kThirdParty;
  if (wants_third && session.filter().clients != "two" && !interrupted()) matrix_third_party(session);
}

}  // namespace lrpc::bench
