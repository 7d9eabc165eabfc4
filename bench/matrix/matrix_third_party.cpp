// The last table of the scenario matrix: what a poller costs a third party, compared with the same calls by plain
// futexes.
#include <fmt/format.h>

#include "calls/team.h"
#include "core/interrupt.h"
#include "core/judge.h"
#include "load/third_party.h"
#include "report/statistics.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using std::chrono::milliseconds;

constexpr int kRounds = 8;
enum Book : std::size_t { with_adaptive = 0, with_futexes = 1, with_nobody = 2 };

/// Both teams run in turn beside the third party, then nobody does. Returns what it recorded in each case: the times
/// from when its wake-ups were due to the end of its work, in nanoseconds.
Result<std::array<Histogram, ThirdParty::kBooks>> run_beside(Session& session, const Cell& cell) {
  auto around = Surroundings::create(cell, session.cores());
  if (!around) return around.error();
  // On two cores, only the poller's core matters: the client uses its own as any caller would.
  auto third = ThirdParty::start(session.cores().seats(cell.placement).server);
  if (!third) return third.error();
  const milliseconds length(session.quick() ? 100 : 250);
  std::vector<std::unique_ptr<Team>> teams;
  for (const Strategy strategy : {Strategy::adaptive, Strategy::plain_futex}) {
    auto team = Team::create(strategy, cell, session.cores(), *around, session.clock());
    if (!team) return team.error();
    if (auto warm = (*team)->run({.untimed = milliseconds(300), .most_untimed = 10'000}); !warm) return warm.error();
    teams.push_back(std::move(*team));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (const Book book : {with_adaptive, with_futexes}) {
      third->open_book(book);
      const Status ran = teams[book]->run({.timed = length, .book = lrpc::bench::Book::judging});
      third->open_book(ThirdParty::kBooks);
      if (!ran) return ran.error();
    }
    third->open_book(with_nobody);
    interruptible_sleep(length);
    third->open_book(ThirdParty::kBooks);
    if (interrupted()) return Error{Errc::call_aborted, "was interrupted"};
  }
  return std::array<Histogram, ThirdParty::kBooks>{third->book(0), third->book(1), third->book(2)};
}

void print_and_emit(Session& session, const Table& table, const Cell& cell,
                    const std::array<Histogram, ThirdParty::kBooks>& books) {
  const double ratio_to_futexes = books[with_adaptive].quantile(0.99) / books[with_futexes].quantile(0.99);
  std::vector<std::string> cells{std::string(name(cell.placement)), std::string(name(cell.pace))};
  for (const Book book : {with_adaptive, with_futexes, with_nobody}) {
    cells.push_back(number(books[book].quantile(0.5) / 1000));
    cells.push_back(number(books[book].quantile(0.99) / 1000));
  }
  cells.push_back(ratio(ratio_to_futexes));
  cells.push_back(ratio_to_futexes <= kThirdPartyBar ? "" : "p99");
  table.print(cells);
  constexpr std::pair<Book, std::string_view> kSystems[] = {
      {with_adaptive, "lrpc"}, {with_futexes, "futex"}, {with_nobody, "null"}};
  for (const auto& [book, system] : kSystems) {
    session.emit_json({.bench = "matrix",
                       .system = system,
                       .gate = book == with_adaptive ? "adaptive" : "none",
                       .placement = name(cell.placement),
                       .test = fmt::format("third-party/{}", name(cell.pace)),
                       .figures = figures_of(books[book])});
  }
}

}  // namespace

void matrix_third_party(Session& session) {
  print_intro("A third party beside our calls, us from when it was due to wake to the end of its work",
              fmt::format("A process of its own wakes every millisecond and computes for 200 us, on the server's seat. "
                          "Beside it run, in turn, the adaptive choice, plain futexes and nobody. ratio: its p99 "
                          "beside adaptive to that beside futexes (bar {:g}).",
                          kThirdPartyBar));
  const Table table{{"placement", -9}, {"pace", -12}, {"adaptive", 8}, {"p99", 8},   {"futexes", 8},
                    {"p99", 8},        {"nobody", 8}, {"p99", 8},      {"ratio", 6}, {"missed", -6}};
  CellFilter filter = session.filter().cells();
  filter.load = "idle";
  filter.clients = "one";
  for (const Cell& cell : cells_of(filter, false, session.cores().has_two())) {
    if (cell.pace == Pace::apart_1ms || (session.quick() && cell.pace != Pace::back_to_back)) continue;
    if (interrupted()) return;
    auto books = run_beside(session, cell);
    if (interrupted()) return;
    if (session.check(books, "third party, " + name(cell))) print_and_emit(session, table, cell, *books);
  }
}

}  // namespace lrpc::bench
