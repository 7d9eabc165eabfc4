#include "session.h"

#include <fmt/format.h>

#include "core/interrupt.h"

namespace lrpc::bench {

void Session::measure_row(const Table& table, Row row, Placement placement, Floor floor, const MakeContender& make) {
  row.placement = name(placement);
  if (interrupted() || !filter_.wants(row.gate, row.placement, row.test)) return;
  const bool needs_two = placement == Placement::two_cores || floor == Floor::polling;
  if (needs_two && !cores_.has_two()) return;  // the note above the table says so once
  const std::string label = fmt::format("{}/{}/{}/{}/{}", row.bench, row.system, row.gate, row.placement, row.test);
  auto figures = measure_alone(label, placement, floor, make);
  if (!figures) return fail(table, row, figures.error().message());
  row.figures = *figures;
  emit(table, row);
}

Result<Figures> Session::measure_alone(const std::string& label, Placement placement, Floor floor,
                                       const MakeContender& make) {
  if (interrupted()) return Error{Errc::call_aborted, "was interrupted"};
  const Seats seats = cores_.seats(placement);
  auto call = make(seats);
  if (!call) return call.error();
  auto against = make_floor(floor, cores_);
  if (!against) return against.error();
  return measure(label, {**call, seats.client}, {**against, floor_seats(floor, cores_).client}, clock_, options_);
}

void Session::emit(const Table& table, const Row& row) {
  table.print(row_cells(row));
  json_.write(row);
}

void Session::fail(const Table& table, const Row& row, const std::string& why) {
  failed_ = true;
  table.print({std::string(row.system), std::string(row.gate), std::string(row.placement), row.test, "FAILED: " + why});
}

void Session::fail(const std::string& why) {
  if (interrupted()) return;
  failed_ = true;
  fmt::print("  FAILED: {}\n", why);
}

void Session::fail(std::string_view what, const Error& why) {
  fail(what.empty() ? why.message() : fmt::format("{}: {}", what, why.message()));
}

}  // namespace lrpc::bench
