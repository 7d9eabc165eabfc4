// What the generator accepts compiles, whatever its names are: macros, words of the generated code.
#include <gtest/gtest.h>

#include "compiler.h"

namespace lrpc::stubgen::test {
namespace {

class CompiledName : public testing::TestWithParam<Place> {};

TEST_P(CompiledName, that_is_a_macro_is_refused_with_a_note_or_compiles) {
  Compiler compiler;
  const Names all = macros(compiler);
  ASSERT_GT(all.size(), 500U);
  for (const char* name : {"ENOENT", "PATH_MAX", "CHAR_BIT", "errno", "stdin"}) EXPECT_TRUE(all.contains(name)) << name;
  expect_refused_or_compiled(GetParam(), all);
}

TEST_P(CompiledName, that_stands_in_the_generated_code_is_refused_with_a_note_or_compiles) {
  Names all = generated_identifiers();
  ASSERT_GT(all.size(), 200U);
  for (const char* name : {"impl", "image", "Code", "lrpc", "std", "kStubs", "get_bool"})
    EXPECT_TRUE(all.contains(name)) << name;
  all.insert({"final", "override", "import", "module"});  // words of C++ in some places only
  expect_refused_or_compiled(GetParam(), all);
}

INSTANTIATE_TEST_SUITE_P(Place, CompiledName, testing::ValuesIn(places()),
                         [](const auto& place) { return std::string(place.param.what); });

}  // namespace
}  // namespace lrpc::stubgen::test
