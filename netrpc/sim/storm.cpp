#include "netrpc/sim/storm.h"

#include <fmt/format.h>

#include <chrono>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/sim/storm_application.h"

namespace lrpc::netrpc {

namespace {

using storm::Ledger;
using storm::StormApplication;

/// What the storm knows of a host's present life.
struct Present {
  StormApplication* application = nullptr;
  std::vector<Protocol*> stack;  ///< Higher ones first.
};

/// Reports what is left after the idle time and DropIdle.
void find_remains(SimHost& host, Present& present, Ledger& ledger) {
  const Shepherd inside(host.monitor());
  for (Protocol* protocol : present.stack) {
    control::Request drop = control::DropIdle{};
    (void)protocol->control(drop);
    control::Statistics left;
    (void)control::ask(*protocol, left);
    if (left.sessions > 0 || left.state > 0)
      ledger.violation(fmt::format("{}: {} keeps {} sessions and {} records", host.name(), protocol->name(),
                                   left.sessions, left.state));
  }
  if (host.pool().in_use() > 0)
    ledger.violation(fmt::format("{}: {} buffers are in use", host.name(), host.pool().in_use()));
  // A sweep for each protocol, and one more for those that keep two tables.
  if (host.host().events().waiting() > 2 * present.stack.size())
    ledger.violation(fmt::format("{}: {} events are waiting", host.name(), host.host().events().waiting()));
}

}  // namespace

StormReport run_storm(const StormOptions& options, const ComposeStack& compose) {
  StormReport report;
  report.calls = options.calls;
  const auto began = std::chrono::steady_clock::now();
  SimWorld world({.seed = options.seed, .link = options.link, .routers = options.link});
  if (options.trace) world.trace(options.trace);
  Ledger ledger(world, options, report);
  std::vector<Present> present(options.hosts);
  bool storming = true;
  for (std::uint32_t i = 0; i < options.hosts; ++i)
    world.add_host({.name = {},
                    .address = {},
                    .segment = i % options.segments,
                    .clock_offset = Duration(world.random() % 1'000'000'000)});
  for (std::uint32_t i = 0; i < options.hosts; ++i) {
    world.host(i).on_boot([&, i](SimHost& host) {
      present[i].stack.clear();
      Protocol& top = compose(host, present[i].stack);
      present[i].application = &host.add<StormApplication>(ledger, host, top);
      if (storming) present[i].application->start();
    });
  }

  FaultSchedule faults(world, options.faults);
  faults.start();
  // Waits until all calls have ended, or none has ended for `patience`.
  std::uint64_t ended_before = 0;
  const auto ended = [&report] {
    return report.answered + report.failed + report.aborted + report.not_executed + report.abandoned;
  };
  bool all = false;
  while (!all) {
    all = world.run_until([&ledger] { return ledger.all_ended(); }, options.patience);
    if (!all && ended() == ended_before) break;
    ended_before = ended();
  }
  storming = false;
  report.virtual_time = world.now();
  if (all) {
    ledger.count_failed(faults.crashes());
  } else {
    ledger.find_hung();
  }

  faults.stop();
  world.set_links(SimLink{});
  if (all) {
    for (std::uint32_t i = 0; i < options.hosts; ++i) {
      const Shepherd inside(world.host(i).monitor());
      present[i].application->close();
    }
    world.run_for(options.idle);
    for (std::uint32_t i = 0; i < options.hosts; ++i) find_remains(world.host(i), present[i], ledger);
  }
  report.crashes = faults.crashes();
  report.partitions = faults.partitions();
  report.pauses = faults.pauses();
  report.wires = world.counters();
  StormReport finished = report;  // copied first: the calls that the crashes below abandon do not count
  for (std::uint32_t i = 0; i < options.hosts; ++i) world.host(i).crash();
  finished.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return finished;
}

}  // namespace lrpc::netrpc
