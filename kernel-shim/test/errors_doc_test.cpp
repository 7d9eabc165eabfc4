// docs/ERRORS.md lists every error code of result.h once, with its number and text.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "lrpc/shim/result.h"

namespace lrpc {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(std::string(LRPC_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path;
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

/// "name number text" of each, in the order of the header.
std::vector<std::string> declared_errors() {
  std::vector<std::string> found;
  const std::string header = content("kernel-shim/include/lrpc/shim/result.h");
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

}  // namespace
}  // namespace lrpc
