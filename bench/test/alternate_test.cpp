#include "layers/alternate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRounds = 5;

Alternated run(const std::vector<Subject>& subjects, std::size_t rounds = kRounds) {
  return alternate(subjects, TickClock::calibrate(), rounds, 100us);
}

bool burn(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
  return true;
}

TEST(Alternate, each_subject_has_a_block_a_round) {
  const Alternated measured = run({{"a", [] { return burn(1us); }}, {"b", [] { return burn(1us); }}});
  ASSERT_EQ(measured.blocks.size(), 2U);
  EXPECT_EQ(measured.blocks[0].size(), kRounds);
  EXPECT_EQ(measured.blocks[1].size(), kRounds);
}

TEST(Alternate, times_are_of_one_of_the_operations_that_once_makes) {
  const Alternated measured = run({{"ten at once", [] { return burn(20us); }, 10}}, 50);
  const double least = *std::ranges::min_element(measured.blocks[0]);  // other processes may disturb some of them
  EXPECT_GE(least, 1990);
  EXPECT_LT(least, 19'900);
}

TEST(Alternate, a_subject_works_only_between_its_before_and_its_after) {
  bool ready = false;
  bool worked_unprepared = false;
  std::size_t prepared = 0;
  std::size_t put_away = 0;
  const Alternated measured = run({{"a",
                                    [&] {
                                      worked_unprepared |= !ready;
                                      return burn(1us);
                                    },
                                    1,
                                    [&] {
                                      ++prepared;
                                      return ready = true;
                                    },
                                    [&] {
                                      ++put_away;
                                      ready = false;
                                    }},
                                   {"b", [&] {
                                      worked_unprepared |= ready;  // true only if "a" has not been put away
                                      return burn(1us);
                                    }}});
  EXPECT_FALSE(worked_unprepared);
  EXPECT_EQ(prepared, kRounds + 1);  // once more in the warm-up
  EXPECT_EQ(put_away, prepared);
}

TEST(Alternate, a_subject_that_fails_is_dropped_and_the_others_go_on) {
  std::size_t blocks = 0;
  const auto begin_block = [&] {
    ++blocks;
    return true;
  };
  const Alternated measured = run({{"fails at once", [] { return false; }},
                                   {"fails later", [&] { return blocks < 4 && burn(10us); }, 1, begin_block},
                                   {"cannot begin", [] { return burn(1us); }, 1, [] { return false; }},
                                   {"works", [] { return burn(1us); }}});
  EXPECT_TRUE(measured.blocks[0].empty());
  EXPECT_LT(measured.blocks[1].size(), kRounds);
  EXPECT_TRUE(measured.blocks[2].empty());
  EXPECT_EQ(measured.blocks[3].size(), kRounds);
}

TEST(Alternate, ratio_and_difference_are_medians_of_pairs_of_the_same_round) {
  const Alternated measured{{{10, 100, 20}, {15, 150, 40}}};
  EXPECT_DOUBLE_EQ(measured.ratio(1, 0), 1.5);
  EXPECT_DOUBLE_EQ(measured.difference(1, 0), 20);
  EXPECT_DOUBLE_EQ(measured.median_of(1), 40);
}

TEST(Alternate, the_order_changes_from_round_to_round) {
  std::string order;
  const auto subject = [&](char name) {
    return Subject{std::string(1, name), [] { return burn(1us); }, 1,
                   [&order, name] {
                     order += name;
                     return true;
                   }};
  };
  const Alternated measured = run({subject('a'), subject('b'), subject('c')}, 20);
  EXPECT_EQ(measured.blocks[0].size(), 20U);
  const std::string rounds = order.substr(3);  // without the three of the warm-up
  std::size_t first = 0;
  for (std::size_t i = 0; i < rounds.size(); i += 3) first += rounds[i] == 'a' ? 1U : 0U;
  EXPECT_GT(first, 0U);
  EXPECT_LT(first, 20U);
}

TEST(Alternate, instances_of_a_row_are_pooled_round_by_round) {
  Alternated measured;
  // Two rows, three instances of each; one instance of the second row has failed in the last round.
  measured.blocks = {{1, 10}, {5, 50}, {3, 30}, {7, 70}, {2, 20}, {6}};
  const Alternated rows = pooled(measured, 2);
  ASSERT_EQ(rows.blocks.size(), 2U);
  EXPECT_EQ(rows.blocks[0], (std::vector<double>{2, 20}));
  EXPECT_EQ(rows.blocks[1], (std::vector<double>{6}));
}

}  // namespace
}  // namespace lrpc::bench
