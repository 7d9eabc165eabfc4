// Which names are published, where there are too many.
#include "publish/chosen_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace lrpc::directory {
namespace {

/// Names as lrpcd lists them: of several users, in byte order.
class Listed {
 public:
  Listed& add(uid_t user, const std::string& begin, int count) {
    for (int i = 0; i < count; ++i) {
      shim::ListedName one;
      one.name = begin + std::to_string(i);
      one.server.uid = user;
      all_.push_back(one);
    }
    std::ranges::sort(all_, {}, &shim::ListedName::name);
    return *this;
  }
  [[nodiscard]] std::vector<shim::ListedName> chosen(std::size_t most) const { return choose_names(all_, most); }
  [[nodiscard]] std::map<uid_t, int> counts(std::size_t most) const {
    std::map<uid_t, int> counts;
    for (const auto& one : chosen(most)) ++counts[one.server.uid];
    return counts;
  }
  /// All but those of `user`.
  [[nodiscard]] std::set<std::string> of_others(uid_t user, std::size_t most) const {
    std::set<std::string> names;
    for (const auto& one : chosen(most))
      if (one.server.uid != user) names.insert(one.name);
    return names;
  }

 private:
  std::vector<shim::ListedName> all_;
};

using Counts = std::map<uid_t, int>;

TEST(ChosenNames, are_all_where_there_is_room) {
  EXPECT_EQ(Listed().add(1, "a", 3).add(2, "b", 2).counts(5), (Counts{{1, 3}, {2, 2}}));
  EXPECT_TRUE(Listed().chosen(5).empty());
}

TEST(ChosenNames, of_one_user_fill_all_places_with_the_first_in_byte_order) {
  const auto chosen = Listed().add(1, "a", 3).add(1, "b", 3).chosen(4);
  ASSERT_EQ(chosen.size(), 4U);
  EXPECT_EQ(chosen.front().name, "a0");
  EXPECT_EQ(chosen.back().name, "b0");
}

TEST(ChosenNames, include_the_name_behind_those_of_four_users_who_fill_all_places) {
  Listed listed;
  for (uid_t user = 1; user <= 4; ++user) listed.add(user, "a" + std::to_string(user) + "-", 1024);
  listed.add(5, "z", 1);
  const auto chosen = listed.chosen(4096);
  EXPECT_EQ(chosen.size(), 4096U);
  EXPECT_EQ(chosen.back().name, "z0");
  EXPECT_EQ(listed.counts(4096), (Counts{{1, 1024}, {2, 1024}, {3, 1024}, {4, 1023}, {5, 1}}));
}

TEST(ChosenNames, leave_to_others_what_a_user_does_not_need) {
  EXPECT_EQ(Listed().add(1, "a", 100).add(2, "b", 100).add(3, "c", 2).counts(30), (Counts{{1, 14}, {2, 14}, {3, 2}}));
}

TEST(ChosenNames, are_in_byte_order_as_they_were) {
  const auto chosen = Listed().add(2, "a", 4).add(1, "b", 4).add(2, "c", 4).chosen(7);
  EXPECT_TRUE(std::ranges::is_sorted(chosen, {}, &shim::ListedName::name));
}

TEST(ChosenNames, do_not_change_with_the_names_of_another_user) {
  Listed before;
  Listed after;
  before.add(1, "m", 50).add(2, "n", 50).add(3, "a", 50);
  after.add(1, "m", 50).add(2, "n", 50).add(3, "x", 50);  // the third user has replaced all of its names
  EXPECT_EQ(before.of_others(3, 40), after.of_others(3, 40));
  EXPECT_EQ(before.of_others(3, 40).size(), 27U);
}

}  // namespace
}  // namespace lrpc::directory
