// What every command of the bench works with: the machine, the clock, the options, and the output of rows.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/contender.h"
#include "core/matrix_cell.h"
#include "core/measure.h"
#include "core/placement.h"
#include "core/ticks.h"
#include "floors/floors.h"
#include "report/json.h"
#include "report/row.h"
#include "report/svg_plot.h"
#include "report/table.h"

namespace lrpc::bench {

/// --gate, --placement, --test: rows that differ are neither measured nor printed. --load, --pace, --clients: the same
/// for the cells of the scenario matrix.
struct Filter {
  std::string gate;
  std::string placement;
  std::string test;
  std::string load = {};
  std::string pace = {};
  std::string clients = {};
  std::string svg = {};  ///< --svg: the directory for plots; none are written if empty.
  [[nodiscard]] CellFilter cells() const { return {load, placement, pace, clients}; }
  [[nodiscard]] bool wants(std::string_view row_gate, std::string_view row_placement,
                           std::string_view row_test) const noexcept {
    const auto matches = [](std::string_view asked, std::string_view is) { return asked.empty() || asked == is; };
    return matches(gate, row_gate) && matches(placement, row_placement) && matches(test, row_test);
  }
};

class Session {
 public:
  Session(Cores cores, TickClock clock, MeasureOptions options, bool quick, Filter filter, JsonLines json)
      : cores_(cores),
        clock_(clock),
        options_(options),
        quick_(quick),
        filter_(std::move(filter)),
        json_(std::move(json)) {}

  [[nodiscard]] const Cores& cores() const noexcept { return cores_; }
  [[nodiscard]] const TickClock& clock() const noexcept { return clock_; }
  [[nodiscard]] const Filter& filter() const noexcept { return filter_; }
  [[nodiscard]] const MeasureOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool quick() const noexcept { return quick_; }
  /// Whether this machine has that placement, and the filter wants it.
  [[nodiscard]] bool wants(Placement placement) const noexcept {
    return (placement != Placement::two_cores || cores_.has_two()) &&
           (filter_.placement.empty() || filter_.placement == name(placement));
  }

  /// Starts the contender's peers on the server's seat.
  using MakeContender = std::function<Result<std::unique_ptr<Contender>>(const Seats& seats)>;
  /// Measures `row` against a newly started floor, prints it in `table` and writes it as JSON. Does nothing if the
  /// filter does not want the row.
  void measure_row(const Table& table, Row row, Placement placement, Floor floor, const MakeContender& make);

  /// Measures as measure_row() does, but prints and writes nothing.
  Result<Figures> measure_alone(const std::string& label, Placement placement, Floor floor, const MakeContender& make);

  void emit(const Table& table, const Row& row);
  void emit_json(const Row& row) { json_.write(row); }
  /// Writes the plot into --svg's directory, if one was given. If that fails, it calls fail().
  void draw(const std::string& name, const std::string& svg) {
    if (!filter_.svg.empty()) check(write_picture(filter_.svg + "/" + name + ".svg", svg));
  }
  /// Prints why a row has no figures, and makes the program exit with status 1.
  void fail(const Table& table, const Row& row, const std::string& why);
  /// The same for more than one row. Does nothing after an interruption, which is no failure.
  void fail(const std::string& why);
  /// The same with the error of `what`, or of nothing in particular if that is empty.
  void fail(std::string_view what, const Error& why);
  /// Calls fail(what, error) if a Status or a Result has an error. Returns whether it has none.
  template <class Outcome>
  bool check(const Outcome& outcome, std::string_view what = {}) {
    if (!outcome) fail(what, outcome.error());
    return outcome.has_value();
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  Cores cores_;
  TickClock clock_;
  MeasureOptions options_;
  bool quick_;
  Filter filter_;
  JsonLines json_;
  bool failed_ = false;
};

/// The commands, each a table of its own.
void table3(Session& session);
void table4(Session& session);
void table5(Session& session);
void bind_cost(Session& session);
void hostile_users(Session& session);
void instructions(Session& session);
void async(Session& session);
void death(Session& session);
void default_choice(Session& session);
void default_in_brief(Session& session);  ///< The plainest situations of default_choice().
void idle(Session& session);
void bpf_cost(Session& session);
void layers(Session& session);
void composite(Session& session);
void group(Session& session);
void conversation(Session& session);
void components(Session& session);
void network(Session& session);
void paired(Session& session);
void remote(Session& session);
void remote_group(Session& session);
void loss(Session& session);
void figure2(Session& session);
void change(Session& session);
void matrix(Session& session);
void scale(Session& session);
// Parts of these.
void matrix_third_party(Session& session);                   ///< The last of matrix().
void profile(Session& session);                              ///< Of layers(). Without valgrind it only says so.
void open_sessions(Session& session);                        ///< The last of layers(). Raises the descriptor limit.
Status user_to_user(Session& session, Placement placement);  ///< The last of network(). Errors: those of Field::add().

}  // namespace lrpc::bench
