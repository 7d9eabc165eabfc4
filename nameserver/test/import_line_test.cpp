// The order in which imports of a server's names are served.
#include "quota/import_line.h"

#include <gtest/gtest.h>

#include <string>

namespace lrpc::nameserver {
namespace {

/// The ids of all waiting imports, in the order of their turns.
std::string turns(ImportLine& line, const std::map<ImportId, ImportLine::User>& users) {
  std::string order;
  while (!line.empty()) {
    const ImportId next = line.next();
    order += std::to_string(next) + " ";
    line.had_turn(users.at(next));
    line.erase(users.at(next), next);
  }
  return order;
}

ImportLine line_of(const std::map<ImportId, ImportLine::User>& users) {
  ImportLine line;
  for (const auto& [id, user] : users) line.insert(user, id);
  return line;
}

TEST(ImportLine, of_one_user_has_the_order_of_arrival) {
  const std::map<ImportId, ImportLine::User> users{{1, {5, 0}}, {2, {5, 0}}, {3, {5, 0}}};
  ImportLine line = line_of(users);
  EXPECT_EQ(turns(line, users), "1 2 3 ");
}

TEST(ImportLine, lets_users_take_turns_however_many_imports_one_has) {
  const std::map<ImportId, ImportLine::User> users{{1, {5, 0}}, {2, {5, 0}}, {3, {5, 0}}, {4, {5, 0}},
                                                   {5, {6, 0}}, {6, {6, 0}}, {7, {3, 0}}};
  ImportLine line = line_of(users);
  EXPECT_EQ(turns(line, users), "7 1 5 2 6 3 4 ");
}

TEST(ImportLine, counts_each_other_host_as_a_user) {
  const std::map<ImportId, ImportLine::User> users{{1, {5, 1}}, {2, {5, 1}}, {3, {5, 2}}, {4, {5, 0}}};
  ImportLine line = line_of(users);
  EXPECT_EQ(turns(line, users), "4 1 3 2 ");
}

TEST(ImportLine, keeps_the_turn_of_who_was_next_and_could_not_be_served) {
  const std::map<ImportId, ImportLine::User> users{{1, {5, 0}}, {2, {6, 0}}};
  ImportLine line = line_of(users);
  EXPECT_EQ(line.next(), 1U);
  EXPECT_EQ(line.next(), 1U);
  line.had_turn({5, 0});
  EXPECT_EQ(line.next(), 2U);
}

TEST(ImportLine, forgets_who_leaves_and_ignores_who_was_not_there) {
  ImportLine line;
  line.insert({5, 0}, 1);
  line.insert({5, 0}, 2);
  line.erase({5, 0}, 1);
  line.erase({5, 0}, 1);
  line.erase({6, 0}, 2);
  EXPECT_EQ(line.next(), 2U);
  line.erase({5, 0}, 2);
  EXPECT_TRUE(line.empty());
}

}  // namespace
}  // namespace lrpc::nameserver
