#include "programs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "length.h"

namespace testing_lrpc {
namespace {

/// Runs of one program. The bound of departures rises as far as these suffice.
std::uint64_t most_runs() { return long_tests() ? 400'000 : 60'000; }
/// Searched completely, however many runs it takes.
constexpr unsigned kLeastDepartures = 2;

/// The search of one program: each step allows one more departure.
struct Search {
  const NamedProgram* program = nullptr;
  std::uint64_t runs = 0;
  unsigned departures = 0;  ///< Searched completely.
  bool over = false;
};

/// One step. Returns what went wrong, or nothing.
std::string deepen(Search& search, unsigned departures, const std::set<std::string>& weakened) {
  const bool all = departures <= kLeastDepartures;
  const explore::Outcome outcome =
      explore::explore(search.program->program,
                       {.departures = departures, .runs = all ? ~std::uint64_t{0} : most_runs(), .weakened = weakened});
  search.runs += outcome.runs;
  if (!outcome.failure.empty()) return search.program->name + ": " + outcome.failure;
  if (outcome.complete) search.departures = departures;
  search.over = !outcome.complete || (!all && search.runs >= most_runs() / 4);  // the next step has many times as many
  return {};
}

/// Searches all programs in turns, because a fault appears first where it needs the fewest departures. Empty: none goes
/// wrong.
std::string failure_of(const std::vector<NamedProgram>& programs, const std::set<std::string>& weakened) {
  std::vector<Search> searches;
  for (const NamedProgram& one : programs) searches.push_back({.program = &one});
  for (unsigned departures = 0; !std::ranges::all_of(searches, &Search::over); ++departures) {
    for (Search& search : searches) {
      if (search.over) continue;
      std::string failure = deepen(search, departures, weakened);
      if (!failure.empty()) return failure;
    }
  }
  return {};
}

}  // namespace

TEST_P(Explored, goes_right_in_every_order) {
  Search search{.program = &GetParam()};
  std::string failure;
  for (unsigned departures = 0; failure.empty() && !search.over; ++departures) failure = deepen(search, departures, {});
  EXPECT_EQ(failure, "");
  std::printf("%llu runs, all with at most %u departures\n", static_cast<unsigned long long>(search.runs),
              search.departures);
}

void expect_to_be_needed(const std::vector<NamedProgram>& programs, const std::set<std::string>& needed) {
  std::set<std::string> others;
  for (const NamedProgram& one : programs) others.merge(explore::explore(one.program, {.departures = 2}).ordered);
  const std::size_t all = others.size();
  for (const std::string& order : needed) EXPECT_EQ(others.erase(order), 1U) << "nothing asks for: " << order;
  EXPECT_EQ(failure_of(programs, others), "") << "one more order is needed";
  for (const std::string& order : needed) {
    std::set<std::string> with_others = others;
    with_others.insert(order);
    EXPECT_NE(failure_of(programs, with_others), "") << "nothing goes wrong without: " << order;
  }
  std::printf("%zu orders, %zu of them needed\n", all, needed.size());
}

}  // namespace testing_lrpc
