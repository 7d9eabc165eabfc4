// What nameserver, server and clients still use during ten seconds without a call, after heavy use.
#include <fmt/format.h>
#include <unistd.h>

#include <vector>

#include "calls/team.h"
#include "core/interrupt.h"
#include "core/process_usage.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using std::chrono::seconds;

Status run(Session& session, const Table& table) {
  const seconds quiet(session.quick() ? 3 : 10);
  const Cell cell{.load = Load::idle, .placement = Placement::unpinned, .pace = Pace::back_to_back, .clients = 2};
  const Surroundings nothing;
  auto team = Team::create(Strategy::adaptive, cell, session.cores(), nothing, session.clock());
  if (!team) return team.error();
  const auto processes = (*team)->processes();
  std::vector<CpuUsage> before;
  const auto look = [&](std::vector<CpuUsage>& into) -> Status {
    for (const auto& process : processes) {
      auto usage = cpu_usage(process.pid);
      if (!usage) return usage.error();
      into.push_back(*usage);
    }
    return {};
  };
  if (auto used = (*team)->run({.untimed = seconds(1)}); !used) return used.error();
  interruptible_sleep(std::chrono::milliseconds(500));  // what ends by itself soon after the last call does not count
  if (auto looked = look(before); !looked) return looked.error();
  interruptible_sleep(quiet);
  if (interrupted()) return {};
  std::vector<CpuUsage> after;
  if (auto looked = look(after); !looked) return looked.error();

  std::uint64_t ticks = 0;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const CpuUsage used = after[i] - before[i];
    ticks += used.clock_ticks;
    table.print({std::string(processes[i].what), fmt::format("{}", used.threads), fmt::format("{}", used.clock_ticks),
                 fmt::format("{:.1f}", static_cast<double>(used.ns) / 1000), fmt::format("{}", used.voluntary),
                 fmt::format("{}", used.involuntary)});
    session.emit_json({.bench = "idle",
                       .gate = "adaptive",
                       .placement = "unpinned",
                       .test = fmt::format("{} {}", processes[i].what, i),
                       .figures = Figures::exactly(static_cast<double>(used.ns), 0)});
  }
  print_note(fmt::format("{} clock ticks of {:.0f} ms in {} s: {}.", ticks,
                         1000.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)), quiet.count(),
                         ticks == 0 ? "nothing measurable, as it should be" : "MEASURABLE"));
  return {};
}

}  // namespace

void idle(Session& session) {
  print_intro("Without calls, after heavy use: processor time",
              "Two clients call for a second, back to back, on every processor. Half a second later the books are "
              "opened; nobody calls any more. clock ticks: utime + stime, the bar is none. sleeps: voluntary context "
              "switches, each the end of a turn on a processor.");
  const Table table{{"process", -10}, {"threads", 7}, {"clock ticks", 11}, {"us", 9}, {"sleeps", 7}, {"preempted", 9}};
  session.check(run(session, table));
}

}  // namespace lrpc::bench
