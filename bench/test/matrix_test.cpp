#include <gtest/gtest.h>

#include <limits>

#include "core/judge.h"
#include "core/matrix_cell.h"

namespace lrpc::bench {
namespace {

TEST(Matrix, has_every_combination_once) {
  const auto cells = cells_of({}, false, true);
  EXPECT_EQ(cells.size(), 6U * 3 * 3 * 2);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(cells[i] == cells[j]) << name(cells[i]);
  }
}

TEST(Matrix, leaves_out_two_cores_where_there_is_one) {
  for (const Cell& cell : cells_of({}, false, false)) EXPECT_NE(cell.placement, Placement::two_cores);
}

TEST(Matrix, a_quick_run_has_every_load_in_every_placement) {
  const auto cells = cells_of({}, true, true);
  EXPECT_LT(cells.size(), 30U);
  for (const Load load : kLoads) {
    for (const Placement placement : kPlacements) {
      EXPECT_NE(std::find(cells.begin(), cells.end(), Cell{load, placement, Pace::back_to_back, 1}), cells.end());
    }
  }
}

TEST(Matrix, a_filter_picks_out_one_cell_in_a_quick_run_too) {
  const CellFilter filter{.load = "weights", .placement = "one-core", .pace = "1ms", .clients = "two"};
  EXPECT_EQ(cells_of(filter, true, true),
            (std::vector<Cell>{{Load::unequal_weights, Placement::one_core, Pace::apart_1ms, 2}}));
}

TEST(Judge, the_lowest_median_is_the_best_and_no_median_never_is) {
  EXPECT_EQ(index_of_best(std::vector<double>{3, 1, 2}), 1U);
  EXPECT_EQ(index_of_best(std::vector<double>{1, 1, 1}), 0U);
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(index_of_best(std::vector<double>{none, 7, none}), 1U);
}

TEST(Judge, a_cell_at_its_bars_keeps_them_all) {
  const Verdict verdict = judge({.median = 125, .p99 = 400, .mean = 220}, {.median = 100, .p99 = 200},
                                Figures{.median = 1, .p99 = 400 / 1.5, .mean = 200});
  EXPECT_TRUE(verdict.all_met());
  EXPECT_EQ(verdict.missed(), "");
}

TEST(Judge, every_missed_bar_is_named) {
  const Verdict verdict =
      judge({.median = 126, .p99 = 401, .mean = 221}, {.median = 100, .p99 = 200}, Figures{.p99 = 267, .mean = 200});
  EXPECT_EQ(verdict.missed(), "median p99 mean/f p99/f");
}

TEST(Judge, without_plain_futexes_their_bars_are_kept) {
  const Verdict verdict = judge({.median = 1, .p99 = 1, .mean = 1e9}, {.median = 1, .p99 = 1}, std::nullopt);
  EXPECT_TRUE(verdict.all_met());
}

TEST(Judge, the_figures_of_no_calls_keep_no_bar) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(judge({.median = none, .p99 = none}, {.median = 1, .p99 = 1}, std::nullopt).median_met());
}

TEST(Judge, the_summary_counts_cells_and_names_the_worst) {
  const std::vector<JudgedCell> cells{{"good", {1.0, 1.0, 1.0, 1.0}}, {"slow", {2.0, 1.0}}, {"rough", {1.1, 9.0}}};
  const auto lines = summary(cells, 1);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0], "3 cells, 1 within every bar.");
  EXPECT_EQ(lines[1], "median to best fixed <= 1.25: 2 of 3 cells. Highest: slow 2.00.");
  EXPECT_EQ(lines[2], "p99 to best fixed <= 2: 2 of 3 cells. Highest: rough 9.00.");
  EXPECT_EQ(lines[3], "mean to plain futexes <= 1.1: 1 of 1 cells. Highest: good 1.00.");
}

}  // namespace
}  // namespace lrpc::bench
