// Table IV (LRPC §4): Null, Add, BigIn, BigInOut, for each gate and placement, beside the floors and the naive round
// trips.
#include <fmt/format.h>

#include "calls/lrpc_call.h"
#include "core/interrupt.h"
#include "floors/naive.h"
#include "paper.h"
#include "session.h"

namespace lrpc::bench {
namespace {

/// The floor of calls that sleep instead of polling. All naive rows are compared with it.
Floor sleeping_floor(Placement placement) noexcept {
  return placement == Placement::two_cores ? Floor::polling : Floor::yield;
}

/// On one core every gate is compared with the serial floor. Of the unpinned rows, only those of handoff and trap are,
/// because client and server then stay on one core by themselves.
Floor floor_of(shim::Gate gate, Placement placement) noexcept {
  if (placement == Placement::one_core) return Floor::yield;
  if (placement == Placement::unpinned && (gate == shim::Gate::handoff || gate == shim::Gate::trap))
    return Floor::yield;
  return Floor::polling;
}

/// The paper's figure under similar conditions: LRPC/MP where a poller has another processor, LRPC elsewhere.
PaperFigure paper_figure(std::string_view test, shim::Gate gate, Placement placement) {
  for (const auto& times : paper::kTableIV) {
    if (times.test != test) continue;
    const bool exchange = gate == shim::Gate::exchange || gate == shim::Gate::adaptive;
    const double us = placement != Placement::one_core && exchange ? times.lrpc_mp : times.lrpc;
    return {us, us / paper::table_v::kMinimum};
  }
  return {};
}

void plain_rows(Session& session, const Table& table) {
  constexpr std::pair<std::string_view, PlainProcedure> kTests[] = {{"Null", PlainProcedure::null},
                                                                    {"Add", PlainProcedure::add},
                                                                    {"BigIn", PlainProcedure::big_in},
                                                                    {"BigInOut", PlainProcedure::big_in_out}};
  for (const auto& [test, procedure] : kTests) {
    Row row{.bench = "table4", .system = "null", .test = std::string(test)};
    if (test == "Null")
      row.paper = {paper::table_v::kProcedureCall, paper::table_v::kProcedureCall / paper::table_v::kMinimum};
    session.measure_row(table, row, Placement::one_core, Floor::yield, [&, p = procedure](const Seats&) {
      return Result<std::unique_ptr<Contender>>(make_plain_call(p));
    });
  }
}

/// Each floor against a second instance of itself: its figures, and a ratio that should be 1.
void floor_rows(Session& session, const Table& table) {
  Row yield{.bench = "table4", .system = "floor", .test = "yield"};
  yield.paper = {paper::table_v::kMinimum, 1.0};
  session.measure_row(table, yield, Placement::one_core, Floor::yield, make_yield_floor);
  Row polling{.bench = "table4", .system = "floor", .test = "polling"};
  session.measure_row(table, polling, Placement::two_cores, Floor::polling, make_polling_floor);
}

void naive_rows(Session& session, const Table& table, Placement placement) {
  const auto row = [&](std::string_view system, std::string_view test, const Session::MakeContender& make) {
    session.measure_row(table, {.bench = "table4", .system = system, .test = std::string(test)}, placement,
                        sleeping_floor(placement), make);
  };
  constexpr std::pair<std::string_view, NaiveMessage> kTests[] = {
      {"Null", {1, 1}}, {"BigIn", {200, 1}}, {"BigInOut", {200, 200}}};
  row("futex", "Null", make_naive_futex);
  for (const auto& [test, message] : kTests)
    row("pipe", test, [m = message](const Seats& seats) { return make_naive_pipe(seats, m); });
  for (const auto& [test, message] : kTests)
    row("seqpacket", test, [m = message](const Seats& seats) { return make_naive_seqpacket(seats, m); });
}

void lrpc_rows(Session& session, const Table& table, Placement placement) {
  for (const shim::Gate gate : lrpc_gates()) {
    for (const LrpcTest test : kLrpcTests) {
      Row row{.bench = "table4", .gate = name_of(gate), .test = std::string(name(test))};
      row.paper = paper_figure(row.test, gate, placement);
      session.measure_row(table, row, placement, floor_of(gate, placement),
                          [&](const Seats& seats) { return make_lrpc_call(seats, gate, test); });
    }
  }
}

void print_paper() {
  fmt::print("\n");
  print_note("The paper's Table IV, microseconds on a C-VAX Firefly (its minimum for one processor is 109):");
  for (const auto& t : paper::kTableIV)
    fmt::print("    {:<9} LRPC/MP {:>4}   LRPC {:>4} ({:.2f} x its minimum)   Taos (SRC RPC) {:>4}\n", t.test,
               t.lrpc_mp, t.lrpc, t.lrpc / paper::table_v::kMinimum, t.taos);
}

}  // namespace

void table4(Session& session) {
  print_title("Table IV: one call and its return, ns");
  print_note(
      "null: a plain procedure call. floor: the barest crossing, against itself. ratio: median over pairs of (call "
      "block / floor blocks around it). one-core rows, and unpinned rows that sleep, are held against the yield floor "
      "(two traps and two context switches on one core); the others against the polling floor (one cache line between "
      "two cores). paper ratio: to the paper's single-processor minimum.");
  if (!session.cores().has_two())
    print_note("skipped: two-cores rows, and unpinned rows of the exchange and adaptive gates: " +
               session.cores().describe() + ".");
  fmt::print("\n");
  const Table table(row_columns());
  plain_rows(session, table);
  floor_rows(session, table);
  for (const Placement placement : kPlacements) {
    table.print_line();
    lrpc_rows(session, table, placement);
    naive_rows(session, table, placement);
    if (interrupted()) return;
  }
  print_paper();
}

}  // namespace lrpc::bench
