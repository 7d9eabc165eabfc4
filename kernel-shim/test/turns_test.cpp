// Users take turns, however many waiting members each has.
#include "lrpc/detail/shim/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "length.h"

namespace lrpc::shim {
namespace {

using Letters = Turns<int, char>;

/// All waiting members, in the order of their turns.
std::string taken(Letters& turns) {
  std::string letters;
  while (turns.any()) letters += turns.take()->member;
  return letters;
}

TEST(Turns, come_to_each_user_once_before_one_has_a_second) {
  Letters turns;
  for (const char letter : {'a', 'b', 'c'}) turns.wait(turns.join(1, letter));
  turns.wait(turns.join(2, 'x'));
  for (const char letter : {'p', 'q'}) turns.wait(turns.join(3, letter));
  EXPECT_EQ(taken(turns), "axpbqc");
}

TEST(Turns, come_to_none_that_rests_or_has_left) {
  Letters turns;
  const auto resting = turns.join(1, 'a');
  const auto leaving = turns.join(1, 'b');
  const auto staying = turns.join(1, 'c');
  const auto alone = turns.join(2, 'd');
  for (const auto place : {resting, leaving, staying, alone}) turns.wait(place);
  turns.rest(resting);
  EXPECT_EQ(turns.leave(leaving), 'b');
  EXPECT_EQ(turns.leave(alone), 'd');
  EXPECT_EQ(taken(turns), "c");
  turns.wait(resting);
  EXPECT_EQ(taken(turns), "a");
}

TEST(Turns, of_one_that_waits_already_stay_where_they_are) {
  Letters turns;
  const auto first = turns.join(1, 'a');
  const auto second = turns.join(1, 'b');
  for (const auto place : {first, second, first, first}) turns.wait(place);
  EXPECT_EQ(taken(turns), "ab");
}

TEST(Turns, of_a_user_with_a_new_line_come_after_those_of_all_who_wait) {
  Letters turns;
  const auto a = turns.join(1, 'a');
  const auto b = turns.join(2, 'b');
  const auto c = turns.join(3, 'c');
  for (const auto place : {a, b, c}) turns.wait(place);
  EXPECT_EQ(turns.take()->member, 'a');
  turns.wait(a);
  EXPECT_EQ(taken(turns), "bca");
}

TEST(Turns, keep_no_user_whose_members_have_left) {
  Turns<std::shared_ptr<int>, char> turns;  // a type of user whose copies can be counted
  const auto user = std::make_shared<int>(1);
  const auto first = turns.join(user, 'a');
  const auto second = turns.join(user, 'b');
  turns.wait(second);
  turns.leave(first);
  turns.leave(second);
  EXPECT_EQ(user.use_count(), 1);
  EXPECT_FALSE(turns.any());
}

/// Compares with a slow and simple model: each user's waiting members, and the users by their last turns.
TEST(Turns, are_those_of_a_plain_model_in_any_order_of_events) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  struct User {
    std::vector<int> waiting;
    unsigned since = 0;  ///< When it took its last turn, or began to wait.
  };
  Turns<int, int> turns;
  std::map<int, User> users;
  std::vector<std::pair<int, Turns<int, int>::Place>> members;
  unsigned now = 0;
  for (int round = 0; round < testing_lrpc::rounds(20'000); ++round) {
    const auto what = random() % 8;
    if (members.size() < 3 || (what == 0 && members.size() < 20)) {
      const int user = static_cast<int>(random() % 4);
      members.emplace_back(user, turns.join(user, round));
      continue;
    }
    const std::size_t at = random() % members.size();
    const auto [user, place] = members[at];
    auto& waiting = users[user].waiting;
    const auto it = std::ranges::find(waiting, place->member);
    if (what < 4) {
      turns.wait(place);
      if (waiting.empty()) users[user].since = ++now;
      if (it == waiting.end()) waiting.push_back(place->member);
    } else if (what < 6) {
      if (it != waiting.end()) waiting.erase(it);
      if (what == 4) {
        turns.rest(place);
      } else {
        turns.leave(place);
        members.erase(members.begin() + static_cast<std::ptrdiff_t>(at));
      }
    } else {
      User* next = nullptr;
      for (auto& [number, one] : users)
        if (!one.waiting.empty() && (next == nullptr || one.since < next->since)) next = &one;
      ASSERT_EQ(turns.any(), next != nullptr) << round;
      if (next == nullptr) continue;
      ASSERT_EQ(turns.take()->member, next->waiting.front()) << round;
      next->waiting.erase(next->waiting.begin());
      next->since = ++now;
    }
  }
}

}  // namespace
}  // namespace lrpc::shim
