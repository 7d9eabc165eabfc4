// Table II of The x-Kernel: how the work for a message divides among the components.
#include <fmt/format.h>

#include <fstream>

#include "callgrind_profile.h"
#include "calls/helper.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using Counts = std::map<std::string, std::uint64_t, std::less<>>;

constexpr std::uint64_t kFewer = 1000;
constexpr std::uint64_t kMore = 11'000;

constexpr std::string_view kNotCounted = "the user and the simulated wire";

struct ComponentRow {
  std::string_view name;
  std::optional<double> paper;  ///< Per cent.
};
constexpr ComponentRow kRows[] = {{"buffer manager", 21.8},
                                  {"id manager", 1.8},
                                  {"event manager", {}},
                                  {"ETH", 43.7},
                                  {"VIP (the paper: IP)", 9.8},
                                  {"FRAGMENT (the paper: UDP)", 2.8},
                                  {"interface overhead", 5.3},
                                  {"process management", 8.6},
                                  {"other", 0.3}};

/// Recognizes a component by a part of its source files' paths.
std::string_view component_of(std::string_view file) {
  struct Part {
    std::string_view path;
    std::string_view component;
  };
  static constexpr Part kParts[] = {{"netrpc/message.h", "buffer manager"},
                                    {"src/message.cpp", "buffer manager"},
                                    {"buffer_pool", "buffer manager"},
                                    {"netrpc/map.h", "id manager"},
                                    {"session_cache", "id manager"},
                                    {"event_manager", "event manager"},
                                    {"sim/devices", "ETH"},
                                    {"protocols/vip", "VIP (the paper: IP)"},
                                    {"src/way", "VIP (the paper: IP)"},
                                    {"protocols/fragment", "FRAGMENT (the paper: UDP)"},
                                    {"netrpc/protocol.h", "interface overhead"},
                                    {"src/protocol.cpp", "interface overhead"},
                                    {"netrpc/monitor.h", "process management"},
                                    {"pthread_mutex_", "process management"},
                                    {"netrpc/sim", kNotCounted},
                                    {"bench/", kNotCounted}};
  for (const Part& part : kParts)
    if (file.find(part.path) != std::string_view::npos) return part.component;
  return {};
}

Result<Counts> count(std::uint64_t messages, const PrivateDirectory& directory) {
  const auto out = run_under_callgrind("lrpc-bench-profile", {"--compress-strings=no", "--compress-pos=no"},
                                       {std::to_string(messages)}, directory);
  if (!out) return out.error();
  std::ifstream text(*out);
  return read_profile(text, component_of);
}

/// Prints the instructions of each further message and its answer.
Status measure(Session& session, const PrivateDirectory& directory) {
  const auto fewer = count(kFewer, directory);
  if (!fewer) return fewer.error();
  const auto more = count(kMore, directory);
  if (!more) return more.error();
  const auto a_message = [&](std::string_view component) {
    const auto of = [&](const Counts& counts) {
      const auto found = counts.find(component);
      return found == counts.end() ? 0.0 : static_cast<double>(found->second);
    };
    return (of(*more) - of(*fewer)) / static_cast<double>(kMore - kFewer);
  };
  double all = 0;
  for (const ComponentRow& row : kRows) all += a_message(row.name == "other" ? "" : row.name);
  if (a_message(kRows[0].name) <= 0) {
    print_note("No debug information says whose the instructions are: configure with -DLRPC_BENCH_PROFILE=ON.");
    return {};
  }
  const Table table{{"component", -32}, {"instructions", 13}, {"%", 7}, {"paper %", 8}};
  for (const ComponentRow& row : kRows) {
    const double instructions = a_message(row.name == "other" ? "" : row.name);
    table.print({std::string(row.name), fmt::format("{:.1f}", instructions),
                 fmt::format("{:.1f}", 100 * instructions / all), row.paper ? fmt::format("{:.1f}", *row.paper) : "-"});
    session.emit_json({.bench = "profile",
                       .test = std::string(row.name),
                       .unit = "instructions",
                       .figures = Figures::exactly(instructions, kMore - kFewer)});
  }
  table.print({"boundary crossing", "-", "-", "5.9"});
  table.print_line();
  table.print({"together", fmt::format("{:.1f}", all)});
  print_note(fmt::format("Besides, {}: {:.1f}. `lrpc-bench network` measures the boundary crossing, in time.",
                         kNotCounted, a_message(kNotCounted)));
  return {};
}

}  // namespace

void profile(Session& session) {
  print_intro("Where the work of a message is (The x-Kernel, Table II), instructions in user space",
              "A byte there and a byte back through FRAGMENT, VIP and ETH at both ends, counted by callgrind: what "
              "11,000 take more than 1,000. Inlined lines count for the file that they stand in. The paper's are of "
              "UDP, IP and Ethernet, in time.");
  if (!found_in_path("valgrind")) {
    print_note("valgrind is not installed (on Debian: apt install valgrind): nothing was counted.");
    return;
  }
  const PrivateDirectory directory;
  if (!directory.made()) return session.fail("mkdtemp: no directory for callgrind's output");
  session.check(measure(session, directory));
}

}  // namespace lrpc::bench
