// User-space instructions of one call (both halves in one thread, nothing polls), counted by callgrind.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "calls/helper.h"
#include "paper/paper.h"
#include "session.h"

namespace lrpc::bench {
namespace {

/// A row, and the most instructions that it may take (0: no bar).
struct Test {
  std::string test;
  std::string_view label;
  std::uint64_t bar;
};
const Test kTests[] = {{"plain", "plain procedure call", 0},
                       {"Null", "Null", 105},
                       {"deadline", "Null with a deadline", 135},
                       {"started", "Null, started and finished", 0},
                       {"Add", "Add, inline gate", 0}};
constexpr std::uint64_t kFewer = 1000;
constexpr std::uint64_t kMore = 2000;

/// The total of a callgrind output file; an error if it holds none.
Result<std::uint64_t> total_in(const std::filesystem::path& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    for (const std::string_view key : {"summary: ", "totals: "})
      if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10);
  return Error{Errc::bad_message, "callgrind wrote no total into " + file.string()};
}

Result<std::uint64_t> instructions_of(const std::string& test, std::uint64_t count, const PrivateDirectory& directory) {
  const auto out =
      run_under_callgrind("lrpc-bench-instructions", {"--collect-atstart=no", "--toggle-collect=lrpc_bench_counted"},
                          {test, std::to_string(count)}, directory);
  if (!out) return out.error();
  return total_in(*out);
}

/// The instructions of one more call. Exact, because everything else is the same in both runs.
Result<double> instructions_per_call(const std::string& test, const PrivateDirectory& directory) {
  auto fewer = instructions_of(test, kFewer, directory);
  if (!fewer) return fewer.error();
  auto more = instructions_of(test, kMore, directory);
  if (!more) return more.error();
  return static_cast<double>(*more - *fewer) / static_cast<double>(kMore - kFewer);
}

/// Counts the loop around the calls, then prints each test's row without the loop. Returns the first error.
Status count_all(Session& session, const PrivateDirectory& directory) {
  auto loop = instructions_per_call("loop", directory);
  if (!loop) return loop.error();
  const Table table{{"call", -28}, {"instructions", 13}, {"bar", 6}, {"paper", 6}, {"", -10}};
  for (const auto& [test, label, bar] : kTests) {
    const bool plain = test == "plain";
    Row row{.bench = "instructions",
            .system = plain ? "null" : "lrpc",
            .placement = "one-core",
            .test = test,
            .unit = "instructions"};
    if (!session.filter().wants(row.gate, row.placement, row.test)) continue;
    auto count = instructions_per_call(test, directory);
    if (!count) return count.error();
    const double net = *count - *loop;
    row.figures = Figures::exactly(net, kMore - kFewer);
    table.print({std::string(label), fmt::format("{:.1f}", net), bar != 0 ? fmt::format("{}", bar) : "",
                 test == "Null" ? fmt::format("{}", paper::kNullInstructions) : "",
                 bar == 0                          ? ""
                 : net <= static_cast<double>(bar) ? "bar met"
                                                   : "OVER"});
    session.emit_json(row);
  }
  return {};
}

}  // namespace

void instructions(Session& session) {
  print_intro("Instructions of one call in user space",
              fmt::format("Both halves run alternately in one thread, the call word being ready when the caller looks; "
                          "counted by callgrind: what {} calls take more than {}, less what the empty loop takes. The "
                          "caller's look at the outcome is included.",
                          kMore, kFewer));
  if (!found_in_path("valgrind"))
    return session.fail("valgrind is not installed (on Debian: apt install valgrind); nothing was counted");
  const PrivateDirectory directory;
  if (!directory.made()) return session.fail("mkdtemp: no directory for callgrind's output");
  session.check(count_all(session, directory));
}

}  // namespace lrpc::bench
