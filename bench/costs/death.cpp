// How long after the kernel's report of a death the other side's call returns call_failed, or its on_unbound is called.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "calls/lrpc_call.h"
#include "calls/lrpc_domains.h"
#include "core/delays.h"
#include "core/interrupt.h"
#include "death_scene.h"
#include "report/statistics.h"
#include "session.h"

namespace lrpc::bench {
namespace {

constexpr int kDeaths = 300;
constexpr int kQuickDeaths = 25;

/// The floor; callers at each gate; each way of dying; servers whose clients die.
std::vector<Act> acts() {
  using shim::Gate;
  std::vector<Act> all{{Gate::none, Hears::poll, Way::kill}};
  for (const Gate gate : {Gate::exchange, Gate::handoff, Gate::adaptive, Gate::trap}) {
    all.push_back({gate, Hears::call, Way::kill});
    if (gate != Gate::trap) all.push_back({gate, Hears::started_call, Way::kill});  // a sealed domain starts no calls
    all.push_back({gate, Hears::next_call, Way::kill});
    // A sealed caller learns of the death when the trap's listener closes; the process that holds the sockets keeps the
    // listener open, too.
    if (gate != Gate::trap) all.push_back({gate, Hears::call, Way::kill_held});
  }
  all.push_back({Gate::adaptive, Hears::call, Way::exit});
  all.push_back({Gate::adaptive, Hears::call, Way::crash});
  all.push_back({Gate::adaptive, Hears::last_binding, Way::kill});
  all.push_back({Gate::adaptive, Hears::last_binding, Way::kill_held});
  for (const Way way : {Way::kill, Way::exit, Way::crash, Way::kill_held})
    all.push_back({Gate::adaptive, Hears::unbound, way});
  all.push_back({Gate::adaptive, Hears::unbound_calls, Way::kill});
  return all;
}

struct Sampled {
  std::vector<double> after_report;
  std::vector<double> after_signal;
};

Result<Sampled> sample(const std::string& nameserver, const Seats& seats, const Act& act, int deaths) {
  Sampled sampled;
  for (int i = 0; i < deaths; ++i) {
    auto heard = stage_death(nameserver, seats, act);
    if (!heard) return heard.error();
    sampled.after_report.push_back(heard->after_report);
    sampled.after_signal.push_back(heard->after_signal);
  }
  return sampled;
}

std::string us(double ns) { return number(ns / 1000); }

}  // namespace

void death(Session& session) {
  print_intro("Death: from the kernel's report to whoever is to hear of it, us",
              fmt::format("Each death is that of a domain of its own. From the moment at which poll(2) says that the "
                          "dead one's pidfd is readable to the return of the call with call_failed; \"server\" rows: "
                          "to on_unbound, for a client that died. Who heard before the report waited 0 and is counted "
                          "under \"before\". \"from signal\": the median from the signal that ends it, teardown by the "
                          "kernel included. Bars, on an idle machine: median {:g} us, worst {:g} us.",
                          kMedianDelayBar / 1000, kWorstDelayBar / 1000));
  auto nameserver = PrivateNameserver::start();
  if (!nameserver) return session.fail(nameserver.error().message());
  const Table table{{"who hears", -20}, {"gate", -8}, {"way", -12}, {"deaths", 6},       {"before", 6},
                    {"median", 8},      {"p99", 8},   {"worst", 8}, {"from signal", 11}, {"bars", -6}};
  const Seats seats = session.cores().seats(Placement::unpinned);
  const int full = session.quick() ? kQuickDeaths : kDeaths;
  std::optional<double> floor;
  for (const Act& act : acts()) {
    if (interrupted()) return;
    const bool is_floor = act.hears == Hears::poll;
    Row row{.bench = "death",
            .system = is_floor ? "floor" : "lrpc",
            .gate = name_of(act.gate),
            .placement = name(Placement::unpinned),
            .test = fmt::format("{}, {}", name(act.hears), name(act.way))};
    if (!is_floor && !session.filter().wants(row.gate, row.placement, row.test)) continue;
    const int deaths = act.hears == Hears::last_binding ? full / 4 : full;  // these spend most of their time binding
    const auto sampled = sample((*nameserver)->socket(), seats, act, deaths);
    if (!sampled && act.gate == shim::Gate::trap && sampled.code() == Errc::not_supported) {
      print_note(fmt::format("skipped: {} ({}): {}", row.test, row.gate, sampled.error().message()));
      continue;
    }
    if (!session.check(sampled, fmt::format("{} ({})", row.test, row.gate))) continue;
    const Delays delays = delays_of(sampled->after_report);
    const std::string missed = delays.missed();
    row.figures = delays.waited;
    table.print({std::string(name(act.hears)), is_floor ? "-" : std::string(row.gate), std::string(name(act.way)),
                 fmt::format("{}", row.figures.calls), fmt::format("{}", delays.before), us(row.figures.median),
                 us(row.figures.p99), us(row.figures.max), us(median(sampled->after_signal)),
                 is_floor         ? "-"
                 : missed.empty() ? "met"
                                  : "MISSED: " + missed});
    if (is_floor) floor = row.figures.median;
    row.figures.floor = floor;
    session.emit_json(row);
  }
}

}  // namespace lrpc::bench
