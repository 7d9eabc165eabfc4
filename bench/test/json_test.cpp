#include "report/json.h"

#include <gtest/gtest.h>

namespace lrpc::bench {
namespace {

Row some_row() {
  Row row{.bench = "table4", .gate = "exchange", .placement = "two-cores", .test = "Null"};
  row.figures = {.median = 120, .p99 = 150.5, .min = 100, .max = 9000, .calls = 12345, .floor = 100, .ratio = 1.2};
  return row;
}

TEST(Json, a_row_is_one_line_with_every_key_in_order) {
  EXPECT_EQ(
      to_json(some_row()),
      R"({"bench":"table4","system":"lrpc","gate":"exchange","placement":"two-cores","test":"Null","unit":"ns",)"
      R"("median":120.0,"p99":150.5,"min":100.0,"max":9000.0,"calls":12345,"floor":100.0,"ratio":1.2,"mean":null})");
}

TEST(Json, a_row_without_a_floor_says_null) {
  Row row = some_row();
  row.figures.floor.reset();
  row.figures.ratio.reset();
  EXPECT_TRUE(to_json(row).ends_with(R"("floor":null,"ratio":null,"mean":null})"));
}

TEST(Json, a_row_with_a_mean_has_it) {
  Row row = some_row();
  row.figures.mean = 130;
  EXPECT_TRUE(to_json(row).ends_with(R"("mean":130.0})"));
}

}  // namespace
}  // namespace lrpc::bench
