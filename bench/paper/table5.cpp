// Table V (LRPC §4): where the time of a Null call goes.
#include <fmt/format.h>

#include <optional>

#include "call_parts.h"
#include "calls/lrpc_call.h"
#include "floors/naive.h"
#include "paper.h"
#include "session.h"

namespace lrpc::bench {
namespace {

/// One line of the breakdown.
struct Line {
  std::string_view operation;
  std::string_view test;  ///< The name in the JSON.
  Figures figures;
  std::optional<double> paper_minimum = {};
  std::optional<double> paper_overhead = {};
  /// Whether it is a difference of other lines, not timed itself.
  [[nodiscard]] bool derived() const noexcept { return figures.calls == 0; }
};

Figures derived(double ns) { return Figures::exactly(ns, 0); }

/// A figure for `times` of something that was timed once.
Figures multiplied(Figures figures, double times) {
  for (double* figure : {&figures.median, &figures.p99, &figures.min, &figures.max}) *figure *= times;
  if (figures.ratio) *figures.ratio *= times;
  return figures;
}

/// A kind of transfer under its best conditions: the gate, the placement of both domains, and the floor.
struct Transfer {
  shim::Gate gate;
  Placement placement;
  Floor floor;
};

class Breakdown {
 public:
  Breakdown(Session& session, Transfer transfer) : session_(session), transfer_(transfer) {}

  void print() {
    fmt::print("\nGate {}, {}, against the {} floor:\n\n", name_of(transfer_.gate), name(transfer_.placement),
               name(transfer_.floor));
    const auto call = time([&](const Seats& seats) { return make_lrpc_call(seats, transfer_.gate, LrpcTest::null); });
    const auto plain = time([](const Seats&) { return Made(make_plain_call(PlainProcedure::null)); });
    const auto client_stub = time_part<call_parts::ClientStub>();
    const auto server_stub = time_part<call_parts::ServerStub>();
    const auto linkage = time_part<call_parts::Linkage>();
    const auto word = time_part<call_parts::CallWord>();
    const auto whole = time_part<call_parts::WholeCall>();
    if (!call || !plain || !client_stub || !server_stub || !linkage || !word || !whole) return;
    floor_ns_ = call->floor.value_or(0);
    call_ns_ = call->median;
    using namespace paper::table_v;
    table_ = Table{{"operation", -28},   {"ns", 9}, {"of call", 8}, {"how", -8}, {"paper minimum us", 16},
                   {"paper LRPC us", 13}};
    line({"procedure call", "procedure call", *plain, kProcedureCall});
    if (!floor_lines()) return;
    table_->print_line();
    const double parts = client_stub->median + server_stub->median + linkage->median + word->median;
    line({"client stub (A-stack)", "client stub", *client_stub, {}, kClientStub});
    line({"server stub, procedure", "server stub", *server_stub, {}, kServerStub});
    line({"linkage (claim, release)", "linkage", *linkage});
    line({"call word (ring, return)", "call word", *word});
    line({"checks, and the rest", "checks", derived(whole->median - parts)});
    line({"  software, both halves", "software", *whole, {}, kStubs + kKernelTransfer});
    // From paired differences, because the medians of call and floor may come from different moments.
    const double over_floor = call->over_floor.value_or(0) - whole->median;
    line({"transfer", "transfer", derived(floor_ns_ + over_floor)});
    line({"  of it over the floor", "transfer over floor", derived(over_floor)});
    table_->print_line();
    line({"Null call", "Null", *call, {}, kTotal});
    fmt::print("Null call: {} x the floor (median of the paired ratios); the paper: {:.2f}.\n", ratio(call->ratio),
               paper::table_v::kTotal / paper::table_v::kMinimum);
  }

 private:
  using Made = Result<std::unique_ptr<Contender>>;

  std::optional<Figures> time(const Session::MakeContender& make) {
    auto figures = session_.measure_alone("table5", transfer_.placement, transfer_.floor, make);
    if (figures) return *figures;
    session_.fail(figures.error().message());
    return std::nullopt;
  }
  template <class Part>
  std::optional<Figures> time_part() {
    return time([](const Seats&) { return Made(std::make_unique<Part>()); });
  }

  /// Prints the floor; for the serial floor also its parts.
  bool floor_lines() {
    if (transfer_.floor == Floor::yield) {
      const auto trap = time_part<call_parts::Trap>();
      if (!trap) return false;
      line({"two traps", "two traps", multiplied(*trap, 2), paper::table_v::kTwoTraps});
      line({"two context switches", "two switches", derived(floor_ns_ - 2 * trap->median),
            paper::table_v::kTwoSwitches});
      line({"  floor", "floor", derived(floor_ns_), paper::table_v::kMinimum});
    } else {
      line({"  floor (a line, both ways)", "floor", derived(floor_ns_)});
    }
    return true;
  }

  void line(const Line& line) {
    const double ns = line.figures.median;
    const auto us = [](std::optional<double> figure) { return figure ? fmt::format("{:g}", *figure) : "-"; };
    table_->print({std::string(line.operation), number(ns), fmt::format("{:.1f} %", 100 * ns / call_ns_),
                   line.derived() ? "derived" : "timed", us(line.paper_minimum), us(line.paper_overhead)});
    Row row{.bench = "table5",
            .gate = name_of(transfer_.gate),
            .placement = name(transfer_.placement),
            .test = std::string(line.test)};
    row.figures = line.figures;
    if (!row.figures.ratio) row.figures.ratio = ns / floor_ns_;
    if (!row.figures.floor) row.figures.floor = floor_ns_;
    session_.emit_json(row);
  }

  Session& session_;
  Transfer transfer_;
  double floor_ns_ = 0;
  double call_ns_ = 0;
  std::optional<Table> table_;
};

}  // namespace

void table5(Session& session) {
  print_title("Table V: where the time of a Null call goes, ns");
  print_note(
      "timed: median of blocks, each part alone in a loop of its own, so that a part may look cheaper than it is in "
      "the middle of a call. derived: a difference of timed lines. software: the whole call with both halves in one "
      "thread and no transfer (gate none). The paper's columns are microseconds on a C-VAX Firefly, serial; its "
      "\"LRPC\" column is the overhead over its minimum (48 in all), and the total. Filters do not apply.");
  Breakdown(session, {shim::Gate::handoff, Placement::one_core, Floor::yield}).print();
  if (session.cores().has_two()) {
    Breakdown(session, {shim::Gate::exchange, Placement::two_cores, Floor::polling}).print();
  } else {
    print_note("skipped: the exchange gate on two cores: " + session.cores().describe() + ".");
  }
}

}  // namespace lrpc::bench
