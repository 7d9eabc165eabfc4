#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

#include "length.h"
#include "lrpc/netrpc/map.h"

namespace lrpc::netrpc {
namespace {

std::uint64_t comparisons = 0;

/// A key whose slot in the table is chosen by the test, and whose comparisons are counted.
struct PlacedKey {
  std::uint64_t value = 0;
  std::uint64_t place = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept { return place; }
  friend bool operator==(const PlacedKey& a, const PlacedKey& b) noexcept {
    ++comparisons;
    return a.value == b.value;
  }
};
struct MixedKey {
  std::uint64_t value = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept { return mix(7, value); }
  friend bool operator==(const MixedKey& a, const MixedKey& b) noexcept {
    ++comparisons;
    return a.value == b.value;
  }
};

TEST(Map, what_is_bound_is_resolved_until_it_is_unbound) {
  Map<MixedKey, int> map;
  EXPECT_EQ(map.resolve({1}), nullptr);
  map.bind({1}, 10);
  map.bind({2}, 20);
  EXPECT_EQ(*map.resolve({1}), 10);
  map.bind({1}, 11);
  EXPECT_EQ(*map.resolve({1}), 11);
  EXPECT_EQ(map.size(), 2U);
  EXPECT_TRUE(map.unbind({1}));
  EXPECT_FALSE(map.unbind({1}));
  EXPECT_EQ(map.resolve({1}), nullptr);
  EXPECT_EQ(*map.resolve({2}), 20);
  map.clear();
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.resolve({2}), nullptr);
}

/// Random operations on keys with few slots, so that runs of entries form, merge and wrap around the end of the table.
template <class MakeKey>
void against_model(std::uint32_t seed, MakeKey make_key) {
  std::mt19937 random(seed);
  Map<PlacedKey, std::uint64_t> map;
  std::map<std::uint64_t, std::uint64_t> model;
  for (int i = 0; i < testing_lrpc::rounds(5000); ++i) {
    const std::uint64_t value = random() % 40;
    const PlacedKey key = make_key(value);
    switch (random() % 4) {
      case 0:
      case 1:
        if (model.size() < 7 || model.contains(value)) {
          map.bind(key, static_cast<std::uint64_t>(i));
          model[value] = static_cast<std::uint64_t>(i);
        }
        break;
      case 2: ASSERT_EQ(map.unbind(key), model.erase(value) == 1); break;
      default: break;
    }
    for (std::uint64_t each = 0; each < 40; ++each) {
      const std::uint64_t* const found = map.resolve(make_key(each));
      const auto expected = model.find(each);
      ASSERT_EQ(found != nullptr, expected != model.end());
      if (found != nullptr) {
        ASSERT_EQ(*found, expected->second);
      }
    }
    ASSERT_EQ(map.size(), model.size());
  }
}

TEST(Map, deletion_keeps_every_run_whole_also_around_the_end_of_the_table) {
  const auto first = static_cast<std::uint32_t>(testing_lrpc::test_seed());
  for (std::uint32_t seed = first; seed != first + 3; ++seed) {
    against_model(seed, [](std::uint64_t value) { return PlacedKey{value, 13 + value % 5}; });  // 16 slots: runs wrap
    against_model(seed, [](std::uint64_t value) { return PlacedKey{value, value % 16}; });
    against_model(seed, [](std::uint64_t value) { return PlacedKey{value, 15}; });
  }
}

TEST(Map, a_large_map_behaves_like_a_model) {
  std::mt19937 random(3);  // NOLINT: the same every time
  Map<MixedKey, std::uint64_t> map;
  std::map<std::uint64_t, std::uint64_t> model;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const std::uint64_t value = random() % 5000;
    if (random() % 2 == 0) {
      map.bind({value}, i);
      model[value] = i;
    } else {
      ASSERT_EQ(map.unbind({value}), model.erase(value) == 1);
    }
  }
  ASSERT_EQ(map.size(), model.size());
  std::size_t visited = 0;
  map.for_each([&](const MixedKey& key, std::uint64_t value) {
    ++visited;
    EXPECT_EQ(model.at(key.value), value);
  });
  EXPECT_EQ(visited, model.size());
  const std::size_t odd = map.unbind_if([](const MixedKey& key, std::uint64_t) { return key.value % 2 == 1; });
  EXPECT_EQ(map.size(), model.size() - odd);
  for (const auto& [value, bound] : model) EXPECT_EQ(map.resolve({value}) != nullptr, value % 2 == 0);
}

TEST(Map, finding_costs_the_same_however_many_there_are) {
  const auto comparisons_per_search = [](std::uint64_t count) {
    Map<MixedKey, int> map;
    for (std::uint64_t i = 0; i < count; ++i) map.bind({i << 16}, 0);  // regular numbers, as identifiers are
    comparisons = 0;
    for (std::uint64_t i = 0; i < count; ++i) EXPECT_NE(map.resolve({i << 16}), nullptr);
    return static_cast<double>(comparisons) / static_cast<double>(count);
  };
  const double few = comparisons_per_search(100);
  const double many = comparisons_per_search(100000);
  EXPECT_LT(few, 3.5);
  EXPECT_LT(many, 3.5);  // one comparison with the entry found last, and those of the probe sequence
}

TEST(Map, the_entry_found_last_is_found_again_with_one_comparison) {
  Map<PlacedKey, int> map;
  for (std::uint64_t i = 0; i < 7; ++i) map.bind({i, 3}, 0);
  EXPECT_NE(map.resolve({6, 3}), nullptr);
  comparisons = 0;
  EXPECT_NE(map.resolve({6, 3}), nullptr);
  EXPECT_EQ(comparisons, 1U);
}

struct Reenters {
  Map<MixedKey, std::unique_ptr<Reenters>>* map = nullptr;
  std::uint64_t other = 0;
  Reenters(Map<MixedKey, std::unique_ptr<Reenters>>& in, std::uint64_t unbinds) : map(&in), other(unbinds) {}
  ~Reenters() { map->unbind({other}); }
};

TEST(Map, the_end_of_a_value_may_unbind_others) {
  Map<MixedKey, std::unique_ptr<Reenters>> map;
  for (std::uint64_t i = 0; i < 50; ++i) map.bind({i}, std::make_unique<Reenters>(map, i + 1));
  EXPECT_TRUE(map.unbind({10}));  // each value unbinds the next one
  EXPECT_EQ(map.size(), 10U);
  map.unbind_if([](const MixedKey&, const auto&) { return true; });
  EXPECT_TRUE(map.empty());
}

}  // namespace
}  // namespace lrpc::netrpc
