// docs/ERRORS.md lists every error code of result.h once, with its number and text. error_causes.txt names, for each
// cause, the test that makes it happen.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(std::string(LRPC_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path;
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

/// "name number text" of each code, in the header's order.
std::vector<std::string> declared_errors() {
  std::vector<std::string> found;
  const std::string header = content("kernel-shim/include/lrpc/detail/shim/result.h");
  const std::regex declared(R"(\n  (\w+) = (\d+),)");
  for (std::sregex_iterator at(header.begin(), header.end(), declared), end; at != end; ++at) {
    const auto code = static_cast<Errc>(std::stoi((*at)[2]));
    found.push_back((*at)[1].str() + " " + (*at)[2].str() + " " + std::string(describe(code)));
  }
  return found;
}

std::vector<std::string> documented_errors() {
  std::vector<std::string> found;
  const std::string document = content("docs/ERRORS.md");
  const std::regex row(R"(\n\| `(\w+)` \| (\d+) \| ([^|]+) \| [^|]+ \|)");
  for (std::sregex_iterator at(document.begin(), document.end(), row), end; at != end; ++at)
    found.push_back((*at)[1].str() + " " + (*at)[2].str() + " " + (*at)[3].str());
  return found;
}

TEST(ErrorsDocument, lists_every_code_once_with_its_number_and_text) {
  const auto declared = declared_errors();
  EXPECT_GT(declared.size(), 30U);
  EXPECT_EQ(documented_errors(), declared);
}

std::vector<std::string> split(std::string_view text, std::string_view at) {
  std::vector<std::string> parts;
  for (std::size_t end = text.find(at); end != std::string_view::npos; end = text.find(at)) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + at.size());
  }
  parts.emplace_back(text);
  return parts;
}

/// A cause in the section of a code: "### `name`", "- **who says it**", "  - cause", and continuation lines.
struct DocumentedCause {
  std::string code;
  std::string by;
  std::string cause;
};
std::vector<DocumentedCause> documented_causes() {
  std::vector<DocumentedCause> found;
  DocumentedCause at;
  std::smatch part;
  for (const std::string& line : split(content("docs/ERRORS.md"), "\n")) {
    if (std::regex_match(line, part, std::regex("### `(\\w+)`"))) at = {part[1].str(), "", ""};
    if (at.code.empty()) continue;
    if (std::regex_match(line, part, std::regex(R"(- \*\*(.+)\*\*)"))) at.by = part[1].str();
    if (line.starts_with("  - ")) found.push_back({at.code, at.by, line.substr(4)});
    if (line.starts_with("    ")) found.back().cause += line.substr(3);
  }
  return found;
}

/// A line of error_causes.txt.
struct TestedCause {
  std::string cause;  ///< "name | cause"
  std::string by;     ///< "Suite.test, Suite.test"
};

std::vector<TestedCause> tested_causes() {
  std::vector<TestedCause> found;
  for (const std::string& line : split(content("kernel-shim/test/error_causes.txt"), "\n")) {
    if (line.empty() || line[0] == '#') continue;
    const auto parts = split(line, " | ");
    EXPECT_EQ(parts.size(), 3U) << line;
    if (parts.size() == 3) found.push_back({parts[0] + " | " + parts[1], parts[2]});
  }
  return found;
}

/// "Suite.test" of each test in the sources.
std::set<std::string> tests_in_sources() {
  std::set<std::string> found;
  const std::regex test(R"(\nTEST(_F|_P)?\(\s*(\w+),\s*(\w+)\))");
  const std::filesystem::path root(LRPC_SOURCE_DIR);
  for (const char* top : {"kernel-shim", "libclient", "libserver", "nameserver", "netrpc", "reserve", "sandbox",
                          "sealed", "stubgen", "tests", "tools"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / top)) {
      if (!entry.path().string().ends_with("_test.cpp")) continue;
      const std::string source = content(std::filesystem::relative(entry.path(), root).string());
      for (std::sregex_iterator at(source.begin(), source.end(), test), end; at != end; ++at)
        found.insert((*at)[2].str() + "." + (*at)[3].str());
    }
  }
  return found;
}

TEST(ErrorsDocument, lists_just_the_causes_that_have_a_test) {
  std::vector<std::string> causes;
  for (const TestedCause& one : tested_causes()) causes.push_back(one.cause);
  EXPECT_GT(causes.size(), 80U);
  const auto documented = documented_causes();
  EXPECT_EQ(causes.size(), documented.size());
  for (std::size_t i = 0; i < std::min(causes.size(), documented.size()); ++i)
    ASSERT_EQ(causes[i], documented[i].code + " | " + documented[i].cause)
        << "kernel-shim/test/error_causes.txt and docs/ERRORS.md differ here";
}

TEST(ErrorsDocument, groups_the_causes_of_each_code_by_who_says_it) {
  const std::vector<std::string> whom{"client library", "server", "nameserver", "network"};
  std::vector<std::string> codes;
  std::ptrdiff_t last = 0;
  for (const DocumentedCause& one : documented_causes()) {
    const auto by = std::ranges::find(whom, one.by) - whom.begin();
    EXPECT_LT(by, std::ssize(whom)) << one.by;
    if (codes.empty() || codes.back() != one.code) {
      codes.push_back(one.code);
    } else {
      EXPECT_GE(by, last) << "a group of its own, in the order of the others: " << one.code << ": " << one.cause;
    }
    last = by;
  }
  const auto declared = declared_errors();
  ASSERT_EQ(codes.size(), declared.size());
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_TRUE(declared[i].starts_with(codes[i] + " ")) << codes[i];
}

TEST(ErrorsDocument, names_tests_that_there_are) {
  const auto tests = tests_in_sources();
  EXPECT_GT(tests.size(), 1000U);
  for (const TestedCause& one : tested_causes())
    for (const std::string& test : split(one.by, ", "))
      EXPECT_TRUE(tests.contains(test)) << "no such test: " << test << ", for " << one.cause;
}

}  // namespace
}  // namespace lrpc
