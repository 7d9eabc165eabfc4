// Table III (LRPC §3.5): how often each argument is copied, counted in stubs that are built to count.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "calls/helper.h"
#include "core/program.h"
#include "paper.h"
#include "session.h"

namespace lrpc::bench {
namespace {

struct Counted {
  std::string operation;
  std::string argument;
  unsigned a = 0;
  unsigned e = 0;
  unsigned f = 0;
  [[nodiscard]] unsigned copies() const { return a + e + f; }
  /// The paper's letters, one for each counted copy.
  [[nodiscard]] std::string letters() const { return std::string(a, 'A') + std::string(e, 'E') + std::string(f, 'F'); }
};

/// Parses the output of lrpc-bench-copies, a JSON object a line.
Result<std::vector<Counted>> parse(const std::string& output) {
  std::vector<Counted> rows;
  for (std::size_t begin = 0; begin < output.size();) {
    const std::size_t end = std::min(output.find('\n', begin), output.size());
    const auto line = nlohmann::json::parse(output.substr(begin, end - begin), nullptr, false);
    if (line.is_discarded() || !line.is_object()) return Error{Errc::bad_message, "lrpc-bench-copies printed no JSON"};
    rows.push_back({line.value("operation", ""), line.value("argument", ""), line.value("A", 0U), line.value("E", 0U),
                    line.value("F", 0U)});
    begin = end + 1;
  }
  return rows;
}

Result<std::vector<Counted>> count() {
  auto helper = helper_path("lrpc-bench-copies");
  if (!helper) return helper.error();
  auto output = run_program({*helper}, std::chrono::seconds(20));
  if (!output) return output.error();
  return parse(*output);
}

}  // namespace

void table3(Session& session) {
  print_intro(
      "Table III: copies of an argument, by class",
      "counted: how often generated stubs copied each byte of the payload (8 bytes for the scalar, 200 for the others) "
      "in one call. mutable: declared `uninterpreted`; a scalar never is. The other columns are the paper's.");
  auto rows = count();
  if (!rows) return session.fail(rows.error().message());
  const Table table{{"operation", -16}, {"argument", -8},         {"counted", -8},    {"copies", 6},
                    {"LRPC", -5},       {"message passing", -15}, {"restricted", -10}};
  for (const auto& paper_row : paper::kTableIII) {
    for (const auto& counted : *rows) {
      if (counted.operation != paper_row.operation) continue;
      Row row{.bench = "table3",
              .placement = "one-core",
              .test = counted.operation + " " + counted.argument,
              .unit = "copies"};
      if (!session.filter().wants(row.gate, row.placement, row.test)) continue;
      row.figures = Figures::exactly(counted.copies(), 1);
      table.print({counted.operation, counted.argument, counted.letters(), fmt::format("{}", counted.copies()),
                   std::string(paper_row.lrpc), std::string(paper_row.message_passing),
                   std::string(paper_row.restricted)});
      session.emit_json(row);
    }
  }
  fmt::print("\n");
  print_note(
      "A: client stack to A-stack (message). B: sender to kernel. C: kernel to receiver. D: sender or kernel to "
      "receiver or kernel. E: A-stack (message) to server stack. F: A-stack (message) to client's results. A second F "
      "in a return is the server's stub writing a result that its procedure returned by value.");
}

}  // namespace lrpc::bench
