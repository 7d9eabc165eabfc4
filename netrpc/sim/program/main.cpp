// lrpc-netsim: hundreds of hosts in one process call each other over a stack of protocols on a faulty network. A
// failure can be repeated: the same seed gives the same run.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lrpc/command_line.h"
#include "netrpc/sim/storm.h"
#include "netrpc/sim/storm_stacks.h"

namespace {

using namespace lrpc::netrpc;

struct Arguments {
  StormOptions storm;
  std::string stack = "select-channel-fragment-vip";
  std::uint64_t seeds = 1;
  bool trace = false;
  std::vector<std::string> only;
  double timeout_ms = 2000;
  double reorder_ms = 1;
  double crash_ms = 0;
  double partition_ms = 0;
  double pause_ms = 0;
  double drift_ms = 0;
  bool list = false;
};

Duration milliseconds(double value) { return Duration(static_cast<std::int64_t>(value * 1e6)); }

/// The command that does the same again, with a trace.
std::string replay(const Arguments& arguments) {
  const StormOptions& storm = arguments.storm;
  std::string stack = arguments.stack;
  for (std::size_t i = 0; (i = stack.find('\'', i)) != std::string::npos; i += 4) stack.replace(i, 1, "'\\''");
  return fmt::format(
      "lrpc-netsim --seed {} --calls {} --hosts {} --segments {} --peers {} --at-once {} --largest {} --timeout {} "
      "--loss {} --duplicate {} --reorder {} --reorder-delay {} --corrupt {} "
      "--crashes {} --partitions {} --pauses {} --drift {} --stack '{}' --trace",
      storm.seed, storm.calls, storm.hosts, storm.segments, storm.peers, storm.at_once, storm.largest,
      arguments.timeout_ms, storm.link.loss, storm.link.duplicate, storm.link.reorder, arguments.reorder_ms,
      storm.link.corrupt, arguments.crash_ms, arguments.partition_ms, arguments.pause_ms, arguments.drift_ms, stack);
}

/// Whether a line of the trace names one of the hosts `only`, or the whole network.
bool wanted(const std::vector<std::string>& only, std::string_view line) {
  if (only.empty()) return true;
  for (const std::string& name : only) {
    for (std::size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if ((at == 0 || line[at - 1] == ' ') && (end == line.size() || line[end] < '0' || line[end] > '9')) return true;
    }
  }
  return line.find("the network") != std::string_view::npos;
}

void print(const Arguments& arguments, const StormReport& report) {
  std::printf(
      "%s\n",
      fmt::format("seed {}: {} calls in {:.2f} s ({:.0f} calls/s), {:.3f} s of virtual time\n"
                  "  answered {}, call_failed {}, call_aborted {}, not executed {}, caller crashed {}; executed {}\n"
                  "  at most {:.1f} % may end without an answer\n"
                  "  packets {}: lost {}, doubled {}, overtaken {}, corrupted {}, cut {}, host down {}\n"
                  "  crashes {}, partitions {}, pauses {}; events {}\n"
                  "  violations {}",
                  arguments.storm.seed, report.calls, report.seconds,
                  static_cast<double>(report.calls) / report.seconds,
                  static_cast<double>(report.virtual_time.count()) / 1e9, report.answered, report.failed,
                  report.aborted, report.not_executed, report.abandoned, report.executed, 100 * report.most_failing,
                  report.wires.sent, report.wires.lost, report.wires.duplicated, report.wires.reordered,
                  report.wires.corrupted, report.wires.cut, report.wires.host_down, report.crashes, report.partitions,
                  report.pauses, report.wires.events, report.violation_count)
          .c_str());
  for (const std::string& violation : report.violations) std::printf("    %s\n", violation.c_str());
  if (report.violation_count > 0) std::printf("  again, with a trace: %s\n", replay(arguments).c_str());
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  Arguments arguments;
  StormOptions& storm = arguments.storm;
  lrpc::command_line::Program program(
      "Storms over simulated networks: every call is executed at most once, ends, and leaves nothing behind",
      "lrpc-netsim");
  const auto option = [&program](const char* name, auto& value, const char* description) {
    return program.option(name, value, description).show_default();
  };
  option("--seed", storm.seed, "Decides everything that happens");
  option("--seeds", arguments.seeds, "Run this many seeds, from --seed on");
  option("--calls", storm.calls, "Calls in all").in_range(std::uint64_t{1}, std::uint64_t{1} << 30);
  option("--hosts", storm.hosts, "Hosts; each one calls others and is called").in_range(2, 60000);
  option("--segments", storm.segments, "Ethernets, joined by routers").in_range(1, 10000);
  option("--peers", storm.peers, "Servers that each host calls").in_range(1, 60000);
  option("--at-once", storm.at_once, "Calls that each host has under way").in_range(1, 10000);
  option("--largest", storm.largest, "Bytes of the largest request or reply");
  option("--timeout", arguments.timeout_ms, "The timeout of a call, in ms (one call in ten has none)")
      .in_range(0.001, 1e9);
  option("--loss", storm.link.loss, "Rate of packets lost on each wire").in_range(0.0, 1.0);
  option("--duplicate", storm.link.duplicate, "Rate of packets that arrive twice").in_range(0.0, 1.0);
  option("--reorder", storm.link.reorder, "Rate of packets that take up to --reorder-delay longer").in_range(0.0, 1.0);
  option("--reorder-delay", arguments.reorder_ms, "The longest delay of a reordered packet, in ms");
  option("--corrupt", storm.link.corrupt, "Rate of damaged packets; then only hanging calls and leaks are looked for")
      .in_range(0.0, 1.0);
  option("--crashes", arguments.crash_ms, "A host crashes every so many ms on the average; 0: never");
  option("--partitions", arguments.partition_ms, "The network falls into parts every so many ms; 0: never");
  option("--pauses", arguments.pause_ms, "A host stands still every so many ms; 0: never");
  option("--drift", arguments.drift_ms, "A clock changes its pace every so many ms; 0: never");
  option("--stack", arguments.stack, "A name (see --list), a graph's text, or @FILE");
  program.flag("--trace", arguments.trace, "Print a line for everything that happens");
  program.option("--only", arguments.only, "Trace only lines that speak of these hosts (h3,h7)").separated_by(',');
  program.flag("--list", arguments.list, "Print the stacks that have names");
  if (const auto status = program.parse(argc, argv)) return *status;

  if (arguments.list) {
    for (const NamedStack& stack : storm_stacks())
      std::printf("%.*s\n%.*s\n", static_cast<int>(stack.name.size()), stack.name.data(),
                  static_cast<int>(stack.text.size()), stack.text.data());
    return 0;
  }
  if (arguments.stack.starts_with('@')) {
    const std::ifstream file(arguments.stack.substr(1));
    if (!file) {
      std::fprintf(stderr, "lrpc-netsim: cannot read %s\n", arguments.stack.c_str() + 1);
      return 2;
    }
    std::ostringstream text;
    text << file.rdbuf();
    arguments.stack = text.str();
  }
  const lrpc::Result<ComposeStack> stack = stack_of(arguments.stack, simulated_kinds());
  if (!stack) {
    std::fprintf(stderr, "lrpc-netsim: %s\n", stack.error().message().c_str());
    return 2;
  }
  storm.repeats = repeats_calls(arguments.stack);
  storm.timeout = milliseconds(arguments.timeout_ms);
  storm.tries = tries_of(arguments.stack, storm.timeout);
  storm.link.reorder_delay = milliseconds(arguments.reorder_ms);
  storm.faults.crash_every = milliseconds(arguments.crash_ms);
  storm.faults.partition_every = milliseconds(arguments.partition_ms);
  storm.faults.pause_every = milliseconds(arguments.pause_ms);
  storm.faults.drift_every = milliseconds(arguments.drift_ms);
  if (arguments.trace)
    storm.trace = [&](std::string_view line) {
      if (wanted(arguments.only, line)) std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
    };
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < arguments.seeds; ++i, ++storm.seed) {
    const StormReport report = run_storm(storm, *stack);
    print(arguments, report);
    wrong += report.violation_count;
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lrpc-netsim: %s\n", error.what());
    return 2;
  }
}
