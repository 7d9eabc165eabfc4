// Goldens: each golden/output/*.lrpc against its headers and its table, each golden/diagnostics/*.lrpc against what the
// generator says. LRPC_UPDATE_GOLDEN=1 rewrites them instead; then look at the difference before you commit it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "test_support.h"

namespace lrpc::stubgen {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void expect_golden(const fs::path& path, const std::string& text) {
  if (std::getenv("LRPC_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  EXPECT_EQ(text, read(path)) << path << " differs; LRPC_UPDATE_GOLDEN=1 ctest -L golden rewrites it";
}

std::vector<fs::path> files(const char* folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(fs::path(LRPC_GOLDEN_DIR) / folder)) {
    if (entry.path().extension() == ".lrpc") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string name_of(const testing::TestParamInfo<fs::path>& info) { return info.param.stem().string(); }

class Output : public testing::TestWithParam<fs::path> {};

TEST_P(Output, is_the_golden_one) {
  const fs::path path = GetParam();
  const auto compiled = test::compile_text(read(path));
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  const std::string stem = path.stem().string();
  for (const Header& header : generate(*compiled.interface, stem))
    expect_golden(path.parent_path() / header.name, header.text);
  const Header fuzzer = generate_fuzzer(*compiled.interface, stem);
  expect_golden(path.parent_path() / fuzzer.name, fuzzer.text);
  expect_golden(path.parent_path() / (stem + ".pdl.txt"), print_pdl(*compiled.interface));
  if (const auto xdr = generate_xdr(*compiled.interface, stem, 0x2000'0000))
    expect_golden(path.parent_path() / xdr->name, xdr->text);
}

TEST_P(Output, is_the_same_in_a_second_run) {
  const std::string text = read(GetParam());
  const auto first = generate(*test::compile_text(text).interface, "t");
  const auto second = generate(*test::compile_text(text).interface, "t");
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].text, second[i].text);
  EXPECT_EQ(generate_fuzzer(*test::compile_text(text).interface, "t").text,
            generate_fuzzer(*test::compile_text(text).interface, "t").text);
}

TEST_P(Output, keeps_to_the_line_width) {
  const auto interface = std::move(test::compile_text(read(GetParam())).interface);
  const auto headers = generate(*interface, "t");
  std::vector<Header> all(headers.begin(), headers.end());
  all.push_back(generate_fuzzer(*interface, "t"));
  for (const Header& header : all) {
    std::istringstream lines(header.text);
    bool in_declaration = false;  // the canonical text has one line a declaration, however long
    for (std::string line; std::getline(lines, line);) {
      if (line.find("R\"lrpc(") != std::string::npos) in_declaration = true;
      const auto continued =
          static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) == 0x80; }));
      if (!in_declaration) {
        EXPECT_LE(line.size() - continued, 120U) << header.name << ": " << line;
      }
      if (line.find(")lrpc\"") != std::string::npos) in_declaration = false;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Output, testing::ValuesIn(files("output")), name_of);

class Diagnostic : public testing::TestWithParam<fs::path> {};

TEST_P(Diagnostic, is_the_golden_one) {
  const fs::path path = GetParam();
  Diagnostics diagnostics;
  const Source source{path.filename().string(), read(path)};
  EXPECT_FALSE(compile(source, diagnostics));
  expect_golden(fs::path(path).replace_extension(".txt"), diagnostics.text(source.name));
}

INSTANTIATE_TEST_SUITE_P(Golden, Diagnostic, testing::ValuesIn(files("diagnostics")), name_of);

}  // namespace
}  // namespace lrpc::stubgen
