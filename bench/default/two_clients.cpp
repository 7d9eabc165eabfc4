// Whether two clients of one server make as much of two processors as one client makes of the processor time that it
// uses.
#include <fmt/format.h>

#include <algorithm>

#include "comparison.h"
#include "core/interrupt.h"
#include "default.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

constexpr double kThroughputBar = 1.6;
constexpr auto kLength = 300ms;
constexpr std::array<unsigned, 2> kClients{1, 2};

/// One for each gate of kDefaultAndFixed.
using OfGates = std::array<Runs, kDefaultAndFixed.size()>;

double calls_per_second(const FreshRun& run) {
  return static_cast<double>(run.calls.count()) / std::chrono::duration<double>(kLength).count();
}
/// Per second of processor time of clients and server together.
double calls_per_processor_second(const FreshRun& run) { return calls_per_second(run) / run.processor; }

Result<std::array<OfGates, kClients.size()>> run_all(Session& session, int rounds) {
  std::array<OfGates, kClients.size()> all;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t gate = 0; gate < kDefaultAndFixed.size(); ++gate) {
      for (std::size_t i = 0; i < kClients.size(); ++i) {
        if (interrupted()) return Error{Errc::call_aborted, "interrupted"};
        const Situation situation{.name = kTwoClients, .clients = kClients[i]};
        auto run = run_fresh(situation, kDefaultAndFixed[gate].gate, session.cores(), session.clock(), kLength);
        if (!run) return run.error();
        all[i][gate].runs.push_back(std::move(*run));
      }
    }
  }
  return all;
}

void show(Session& session, const std::array<OfGates, kClients.size()>& all) {
  const Table table{{"gate", -8}, {"1: calls/s", 11}, {"a processor s", 13}, {"2: calls/s", 11}, {"a processor s", 13}};
  std::vector<double> alone;     // of the fixed gates: calls per processor second
  std::vector<double> together;  // of the fixed gates: calls per second
  for (std::size_t gate = 0; gate < kDefaultAndFixed.size(); ++gate) {
    std::vector<std::string> cells{std::string(kDefaultAndFixed[gate].name)};
    for (std::size_t i = 0; i < kClients.size(); ++i) {
      const double rate = all[i][gate].middle(calls_per_second);
      const double worth = all[i][gate].middle(calls_per_processor_second);
      cells.push_back(number(rate));
      cells.push_back(number(worth));
      if (gate != 0) (i == 0 ? alone : together).push_back(i == 0 ? worth : rate);
      session.emit_json({.bench = "default",
                         .gate = name_of(kDefaultAndFixed[gate].gate),
                         .placement = "unpinned",
                         .test = fmt::format("{}: {}", kTwoClients, kClients[i]),
                         .unit = "calls/s",
                         .figures = Figures::exactly(rate, all[i][gate].timing(session.clock()).calls)});
    }
    table.print(cells);
  }
  const double ours = all[1][0].middle(calls_per_second);
  const double of_one = ours / *std::ranges::max_element(alone);
  const double of_two = ours / *std::ranges::max_element(together);
  fmt::print("\n");
  print_note(
      fmt::format("Two clients by the default make {} times the calls a second that one client's best fixed gate "
                  "makes of a second of processor time (bar {:g}{}), and {} times those of two clients by their "
                  "best (bar 1{}).",
                  ratio(of_one), kThroughputBar, of_one < kThroughputBar ? ", MISSED" : "", ratio(of_two),
                  of_two < 1 ? ", MISSED" : ""));
}

}  // namespace

void two_clients(Session& session, int rounds) {
  print_intro("Two clients of one server against one client, back to back, nothing pinned",
              "Medians over the runs. a processor s: calls for each second of processor time that clients and server "
              "took together.");
  if (session.cores().count() < 2) return print_note(fmt::format("skipped: {}: there is one processor", kTwoClients));
  auto all = run_all(session, rounds);
  if (interrupted()) return;
  if (session.check(all, kTwoClients)) show(session, *all);
}

}  // namespace lrpc::bench
