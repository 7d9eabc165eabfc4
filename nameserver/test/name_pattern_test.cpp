// Patterns of names.
#include "policy/name_pattern.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace lrpc::nameserver {
namespace {

TEST(NamePattern, describes_names_as_a_shell_would) {
  struct Case {
    const char* pattern;
    const char* name;
    bool expected;
  };
  for (const auto& [pattern, name, expected] : {
           Case{"db", "db", true},
           {"db", "db.main", false},
           {"db.*", "db.main", true},
           {"db.*", "db.", true},
           {"db.*", "db", false},
           {"*", "lrpc.network", true},
           {"*.log", "a.b.log", true},
           {"*.log", "a.logs", false},
           {"a*b*c", "a-b-b-c", true},
           {"a*b*c", "a-b-b", false},
           {"disk?", "disk1", true},
           {"disk?", "disk", false},
           {"disk[0-3]", "disk2", true},
           {"disk[0-3]", "disk4", false},
           {"disk[!0-3]", "disk4", true},
           {"disk[!0-3]", "disk2", false},
           {"[]]x", "]x", true},
           {"[a-]x", "-x", true},
           {"[abc", "[abc", true},
           {"[abc", "a", false},
           {"\\*", "*", true},
           {"\\*", "x", false},
           {"**", "", true},
           {"", "", true},
           {"", "x", false},
       })
    EXPECT_EQ(matches(pattern, name), expected) << pattern << " " << name;
}

TEST(NamePattern, agrees_with_fnmatch) {
  std::mt19937 random(20);
  const std::string pattern_letters = "ab-!]*?[";
  const std::string name_letters = "ab-!]";
  const auto text = [&](const std::string& letters, std::size_t most) {
    std::string made(random() % (most + 1), ' ');
    for (char& c : made) c = letters[random() % letters.size()];
    return made;
  };
  int matched = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string pattern = text(pattern_letters, 7);
    const std::string name = text(name_letters, 5);
    const bool expected = ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    ASSERT_EQ(matches(pattern, name), expected) << "'" << pattern << "' '" << name << "'";
    matched += expected ? 1 : 0;
  }
  EXPECT_GT(matched, 1000);
}

TEST(NamePattern, many_stars_cost_no_more_than_the_lengths_multiplied) {
  // Trying all ways to match the stars would never end.
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  pattern += "*b";
  EXPECT_FALSE(matches(pattern, std::string(255, 'a')));
}

TEST(NamePattern, that_no_name_can_match_is_known) {
  for (const char* wrong : {"", "db files", "a@host", "a/b", "\x01", "\xc3\xa4", "db[9-0]", "[z-a]*", "a[!!-~]"})
    EXPECT_NE(pattern_error(wrong), "") << wrong;
  for (const char* right : {"*", "db.[a-z]*", "lrpc.network", "a\\*", "[z-ab]", "[!z-a]", "[z", "\\[z-a]", "[]", "[]]"})
    EXPECT_EQ(pattern_error(right), "") << right;
  EXPECT_EQ(pattern_error("*" + std::string(255, '?') + "*"), "");
  EXPECT_NE(pattern_error(std::string(256, '?')), "");
  EXPECT_EQ(pattern_error(std::string(100, '[') + std::string(600, '*')), "");
}

}  // namespace
}  // namespace lrpc::nameserver
