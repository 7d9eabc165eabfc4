#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "default/run_domains.h"
#include "default/situation.h"

namespace lrpc::bench {
namespace {

using Where = Situation::Where;

std::vector<std::string> names_of(const std::vector<Situation>& situations) {
  std::vector<std::string> names;
  for (const Situation& one : situations) names.push_back(one.name);
  return names;
}
bool has(const std::vector<Situation>& situations, const std::string& name) {
  return std::ranges::find(situations, name, &Situation::name) != situations.end();
}

TEST(Situations, have_names_of_their_own_that_fit_the_table) {
  std::set<std::string> names;
  for (const Situation& one : situations()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name << " is there twice";
    EXPECT_LE(std::ssize(one.name), kLongestName) << one.name;
  }
}

TEST(Situations, differ_in_more_than_their_names) {
  std::vector<Situation> all = situations();
  for (Situation& one : all) {
    for (const Situation& other : all) {
      if (&one == &other) break;
      Situation renamed = other;
      renamed.name = one.name;
      EXPECT_FALSE(renamed == one) << other.name << " is " << one.name;
    }
  }
}

TEST(Situations, that_vary_a_pattern_begin_with_its_name) {
  const auto all = situations();
  for (const Situation& one : all) {
    EXPECT_TRUE(has(all, one.name.substr(0, one.name.find(", ")))) << one.name;
  }
}

TEST(Situations, of_every_pattern_are_there_alone_on_one_processor_and_beside_others) {
  const auto all = situations();
  for (const Situation& one : all) {
    if (one.name.find(", ") != std::string::npos) continue;
    for (const char* const variant : {"one processor", "a hog", "2 hogs", "a third party", "a build"})
      EXPECT_TRUE(has(all, one.name + ", " + variant)) << one.name << ", " << variant;
  }
}

TEST(Situations, have_room_for_their_callers_and_a_client_for_each_server) {
  for (const Situation& one : situations()) {
    EXPECT_LE(one.clients * one.threads, RunDesk::kMostCallers) << one.name;
    EXPECT_TRUE(one.in_turn || one.clients >= one.servers) << one.name;
    EXPECT_TRUE(one.shape == Situation::Shape::plain || one.servers == 1) << one.name;
  }
}

TEST(Situations, of_a_short_look_are_twenty_of_all) {
  const auto all = situations();
  EXPECT_EQ(plainest().size(), 20U);
  for (const Situation& one : plainest()) EXPECT_NE(std::ranges::find(all, one), all.end()) << one.name;
}

TEST(Situations, are_chosen_by_a_regular_expression) {
  EXPECT_EQ(names_of(chosen(situations(), "^back to back$").value()), (std::vector<std::string>{"back to back"}));
  EXPECT_EQ(names_of(chosen(situations(), "^(chain|nested).*one proc").value()),
            (std::vector<std::string>{"chain of 3 domains, one processor", "nested callbacks, one processor"}));
  EXPECT_EQ(chosen(situations(), "").value().size(), situations().size());
  EXPECT_TRUE(chosen(situations(), "no such thing").value().empty());
  EXPECT_EQ(chosen(situations(), "(").code(), Errc::invalid_argument);
}

TEST(Situations, that_need_a_second_processor_say_so_where_there_is_none) {
  for (const Situation& one : situations()) {
    const bool can = one.among == 0 && (one.where == Where::anywhere || one.where == Where::one_processor);
    EXPECT_EQ(obstacle(one, 1).has_value(), !can) << one.name;
  }
}

TEST(Situations, on_a_part_of_the_processors_need_more_than_the_part) {
  const Situation four{.among = 4};
  EXPECT_EQ(obstacle(four, 2), "there are only 2 processors");
  EXPECT_EQ(obstacle(four, 4), "every situation has just these");
  EXPECT_EQ(obstacle(four, 5), std::nullopt);
}

}  // namespace
}  // namespace lrpc::bench
