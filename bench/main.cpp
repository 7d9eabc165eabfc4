// lrpc-bench: the paper's Tables III to V and Figure 2, the costs of binding, scale and idleness, the instruction
// count, the scenario matrix, and how soon a death is noticed, on this machine.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/helper.h"
#include "core/interrupt.h"
#include "core/store.h"
#include "lrpc/command_line.h"
#include "session.h"

namespace {

using namespace lrpc::bench;

struct Bench {
  const char* name;
  void (*run)(Session&);
  bool of_all = false;
};
constexpr Bench kBenches[] = {
    {"default", default_choice, true},
    {"table3", table3, true},
    {"table4", table4, true},
    {"table5", table5, true},
    {"bind", bind_cost, true},
    {"instructions", instructions, true},
    {"async", async},
    {"hostile", hostile_users},
    {"figure2", figure2},
    {"matrix", matrix},
    {"change", change},
    {"scale", scale},
    {"death", death},
    {"idle", idle},
    {"bpf", bpf_cost},
    {"layers", layers},
    {"composite", composite},
    {"loss", loss},
    {"network", network},
    {"paired", paired},
    {"remote", remote},
    {"remote-group", remote_group},
    {"components", components},
    {"group", group},
    {"conversation", conversation},
};

int run(const std::string& what, Session& session) {
  const auto start = std::chrono::steady_clock::now();
  fmt::print("lrpc-bench {}{}: {}.\n", what, session.quick() ? " --quick" : "", session.cores().describe());
  if (double load = 0; ::getloadavg(&load, 1) == 1 && load >= 0.5)
    fmt::print(
        "Load average {:.1f}: others are at work here, so expect disturbed rows, above all where two cores poll.\n",
        load);
  for (const Bench& bench : kBenches) {
    if (interrupted()) break;
    if (what == "all" && bench.run == default_choice) {
      default_in_brief(session);
    } else if (what == bench.name || (what == "all" && bench.of_all)) {
      bench.run(session);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (interrupted()) {
    fmt::print("\nInterrupted after {:.1f} s.\n", took.count());
    return 130;
  }
  fmt::print("\n{:.1f} s.{}\n", took.count(), session.failed() ? " Something FAILED: see above." : "");
  return session.failed() ? 1 : 0;
}

/// `storm` is a program of its own, so that the processes it forks do not contain the benches. Returns only if it
/// cannot be run.
int become_the_storm(char** argv) {
  const auto program = helper_path("../tests/storm/lrpc-storm");
  if (!program) {
    fmt::print(stderr, "lrpc-bench: {}\n", program.error().message());
    return 2;
  }
  ::execv(program->c_str(), argv + 1);
  fmt::print(stderr, "lrpc-bench: cannot run {}\n", *program);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "storm") return become_the_storm(argv);
  lrpc::command_line::Program program(
      "The benches of lrpc: each prints a table (bench/README.md says what its numbers mean). storm, which has options "
      "of its own, must be the first argument.",
      "lrpc-bench");
  std::string what = "all";
  std::string json_path;
  bool quick = false;
  Filter filter;
  std::vector<std::string> names;
  for (const Bench& bench : kBenches) names.emplace_back(bench.name);
  names.emplace_back("all");
  program.option("what", what, "Which bench; `all` is the first six").one_of(names).show_default();
  program.option("--json", json_path, "Also write one JSON object a row to this file");
  program.flag("--quick", quick, "Fewer blocks a row: default within two minutes, each of the others within one");
  program.option("--gate", filter.gate, "Only rows of this gate")
      .one_of({"exchange", "handoff", "trap", "adaptive", "none"});
  program.option("--placement", filter.placement, "Only rows of this placement")
      .one_of({"one-core", "two-cores", "unpinned"});
  program.option(
      "--test", filter.test,
      "Only rows of this test (Null, Add, BigIn, BigInOut, ...); default: in whose names this regular expression "
      "finds something");
  program.option("--load", filter.load, "matrix: only cells with this load")
      .one_of({"idle", "one-hog", "every-core", "other-group", "weights", "fifo", "third-party"});
  program.option("--pace", filter.pace, "matrix: only cells with this between two calls")
      .one_of({"back-to-back", "20us", "1ms"});
  program.option("--clients", filter.clients, "matrix: only cells with so many clients").one_of({"one", "two"});
  program.option("--svg", filter.svg, "default, figure2, change, network: write plots into this directory")
      .existing_directory();
  if (const auto status = program.parse(argc, argv)) return *status;

  ::signal(SIGPIPE, SIG_IGN);
  catch_interrupts();
  auto cores = Cores::find();
  if (!cores) {
    fmt::print(stderr, "lrpc-bench: {}\n", cores.error().message());
    return 2;
  }
  JsonLines json;
  if (!json_path.empty()) {
    if (const auto opened = store(json, JsonLines::open(json_path)); !opened) {
      fmt::print(stderr, "lrpc-bench: {}\n", opened.error().message());
      return 2;
    }
  }
  Session session(*cores, TickClock::calibrate(), quick ? MeasureOptions::quick() : MeasureOptions(), quick, filter,
                  std::move(json));
  return run(what, session);
}
