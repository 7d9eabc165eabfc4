// What a process that lives for one call pays.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>

#include "calls/helper.h"
#include "calls/lrpc_domains.h"
#include "comparison.h"
#include "core/interrupt.h"
#include "core/program.h"
#include "default.h"
#include "report/statistics.h"

namespace lrpc::bench {
namespace {

using std::chrono::steady_clock;

constexpr double kAboveNothingBarMs = 3;
constexpr double kImportBarUs = 80;
constexpr double kFirstCallBarUs = 25;
constexpr auto kLimit = std::chrono::seconds(30);

/// The times of the processes of one kind, one for each turn.
struct Lives {
  std::vector<double> whole_ns;  ///< From before the fork to after the end.
  std::vector<double> import_ns;
  std::vector<double> call_ns;
};
/// The first kind does nothing; the others use the gates of kDefaultAndFixed.
using AllLives = std::array<Lives, 1 + kDefaultAndFixed.size()>;

Status live_once(const std::vector<std::string>& command, Lives& lives) {
  const auto begun = steady_clock::now();
  const auto said = run_program(command, kLimit);
  const std::chrono::duration<double, std::nano> took = steady_clock::now() - begun;
  if (!said) return said.error();
  lives.whole_ns.push_back(took.count());
  std::istringstream numbers(*said);
  double import_ns = 0;
  double call_ns = 0;
  if (!(numbers >> import_ns >> call_ns)) return {};
  lives.import_ns.push_back(import_ns);
  lives.call_ns.push_back(call_ns);
  return {};
}

Result<AllLives> live_all(Session& session, int turns) {
  const auto program = helper_path("lrpc-bench-short-lived");
  if (!program) return program.error();
  const auto domains = LrpcDomains::start(session.cores().seats(Placement::unpinned).server);
  if (!domains) return domains.error();
  AllLives all;
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t kind = 0; kind < all.size(); ++kind) {
      if (interrupted()) return Error{Errc::call_aborted, "interrupted"};
      std::vector<std::string> command{*program};
      if (kind > 0) {
        const shim::Gate gate = kDefaultAndFixed[kind - 1].gate;
        command.push_back((*domains)->import_options(gate).nameserver);
        command.emplace_back(LrpcDomains::kExportedName);
        command.emplace_back(name_of(gate));
      }
      if (Status lived = live_once(command, all[kind]); !lived) return lived.error();
    }
  }
  return all;
}

void show(Session& session, const AllLives& all) {
  const Table table{{"process", -8},       {"ms", 7},        {"mean", 7},   {"p99", 7},
                    {"above nothing", 13}, {"import us", 9}, {"call us", 8}};
  std::array<Figures, std::tuple_size_v<AllLives>> timings;
  std::vector<double> above(all.size());
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    const Lives& lives = all[kind];
    double sum = 0;
    for (const double ns : lives.whole_ns) sum += ns;
    Figures& timing = timings[kind];
    timing = figures_of(lives.whole_ns);
    timing.mean = sum / static_cast<double>(lives.whole_ns.size());
    std::vector<double> differences(lives.whole_ns.size());
    std::ranges::transform(lives.whole_ns, all[0].whole_ns, differences.begin(), std::minus<>());
    above[kind] = median(differences) / 1e6;
    const std::string_view name = kind == 0 ? "nothing" : kDefaultAndFixed[kind - 1].name;
    table.print({std::string(name), number(timing.median / 1e6), number(timing.mean / 1e6), number(timing.p99 / 1e6),
                 number(above[kind]), number(median(lives.import_ns) / 1e3), number(median(lives.call_ns) / 1e3)});
    session.emit_json({.bench = "default",
                       .gate = kind == 0 ? "none" : name_of(kDefaultAndFixed[kind - 1].gate),
                       .placement = "unpinned",
                       .test = kShortLived,
                       .figures = timing});
  }
  const auto best = std::ranges::min_element(timings.begin() + 2, timings.end(), {}, &Figures::median);
  const Verdict verdict = judge(timings[1], *best, std::nullopt);
  const auto bar = [](double value, double most) {
    return fmt::format("{} (bar {:g}{})", number(value), most, value > most ? ", MISSED" : "");
  };
  fmt::print("\n");
  print_note(
      fmt::format("By the default: {} ms above a process that does nothing; import {} us, first call {} us; to the "
                  "best fixed gate: "
                  "median {}, p99 {}{}.",
                  bar(above[1], kAboveNothingBarMs), bar(median(all[1].import_ns) / 1e3, kImportBarUs),
                  bar(median(all[1].call_ns) / 1e3, kFirstCallBarUs), ratio(verdict.median_ratio),
                  ratio(verdict.p99_ratio), verdict.all_met() ? "" : ", MISSED: " + verdict.missed()));
}

}  // namespace

void short_lived(Session& session, int rounds) {
  constexpr int kTurnsARound = 10;
  print_intro(
      "A short-lived process: starts, imports, calls Null once, ends",
      "From before its start to after its end, ms; above nothing: median of the differences to a process of the "
      "same program that does nothing, in the same turn.");
  auto all = live_all(session, rounds * kTurnsARound);
  if (interrupted()) return;
  if (session.check(all, kShortLived)) show(session, *all);
}

}  // namespace lrpc::bench
