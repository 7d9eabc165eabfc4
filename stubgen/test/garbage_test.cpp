// Hostile input: whatever the bytes are, the generator terminates with diagnostics or with headers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "length.h"
#include "test_support.h"

namespace lrpc::stubgen {
namespace {

std::vector<std::string> interface_files() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LRPC_GOLDEN_DIR)) {
    if (entry.path().extension() != ".lrpc") continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return texts;
}

/// Compiles the text and generates code if that succeeds. The compiler and the generator must agree about errors.
void survive(const std::string& text) {
  const auto compiled = test::compile_text(text);
  EXPECT_EQ(compiled.interface.has_value(), compiled.errors == 0);
  EXPECT_LE(std::count(compiled.diagnostics.begin(), compiled.diagnostics.end(), '\n'), 1000);
  if (compiled.interface) {
    for (const Header& header : generate(*compiled.interface, "t")) EXPECT_FALSE(header.text.empty());
  }
}

TEST(Garbage, random_bytes_are_survived) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  for (int i = 0; i < testing_lrpc::rounds(250); ++i) {
    std::string text(random() % 300, '\0');
    for (char& c : text) c = static_cast<char>(random());
    survive(text);
    survive("interface T version 1.0 { " + text);
  }
}

TEST(Garbage, random_words_of_the_language_are_survived) {
  constexpr const char* kWords[] = {"interface ",
                                    "version ",
                                    "1.0 ",
                                    "{ ",
                                    "} ",
                                    "( ",
                                    ") ",
                                    "[ ",
                                    "] ",
                                    "< ",
                                    "> ",
                                    "; ",
                                    ": ",
                                    ", ",
                                    "-> ",
                                    ".. ",
                                    "= ",
                                    "- ",
                                    "record ",
                                    "enum ",
                                    "error ",
                                    "handle ",
                                    "type ",
                                    "range ",
                                    "procedure ",
                                    "option ",
                                    "in ",
                                    "out ",
                                    "inout ",
                                    "raises ",
                                    "int32 ",
                                    "string",
                                    "bytes",
                                    "bool ",
                                    "A ",
                                    "B ",
                                    "C ",
                                    "a ",
                                    "b ",
                                    "0 ",
                                    "1 ",
                                    "4096 ",
                                    "99999999999999999999 ",
                                    "/// doc\n",
                                    "/** x */",
                                    "uninterpreted ",
                                    "closes ",
                                    "astacks ",
                                    "astack_size ",
                                    "\n"};
  std::mt19937_64 random(testing_lrpc::test_seed());
  for (int i = 0; i < testing_lrpc::rounds(625); ++i) {
    std::string text = "interface T version 1.0 { ";
    for (std::size_t words = random() % 80; words > 0; --words) text += kWords[random() % std::size(kWords)];
    survive(text);
  }
}

TEST(Garbage, real_files_with_a_few_bytes_changed_are_survived) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  for (const std::string& original : interface_files()) {
    for (int i = 0; i < testing_lrpc::rounds(25); ++i) {
      std::string text = original;
      for (std::size_t changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
        const std::size_t at = random() % text.size();
        switch (random() % 4) {
          case 0: text[at] = static_cast<char>(random()); break;
          case 1: text.erase(at, random() % 20); break;
          case 2: text.insert(at, text.substr(random() % text.size(), random() % 30)); break;
          default: text.resize(at); break;
        }
      }
      survive(text);
    }
  }
}

TEST(Garbage, the_largest_interfaces_are_generated_or_refused) {
  std::string procedures = "interface T version 1.0 { record R { a: int32; }\n";
  for (int i = 0; i < 4096; ++i) procedures += "procedure P" + std::to_string(i) + "(r: R);\n";
  survive(procedures + "}");
  survive(procedures + "procedure P(); }");
  std::string fields = "interface T version 1.0 { record R {";
  for (int i = 0; i < 1024; ++i) fields += "f" + std::to_string(i) + ": int32; ";
  survive(fields + "} procedure A(inout r: R); }");
  std::string errors = "interface T version 1.0 {";
  while (errors.size() < 1'000'000) errors += "procedure A(a: Nothing);";
  survive(errors);
}

}  // namespace
}  // namespace lrpc::stubgen
