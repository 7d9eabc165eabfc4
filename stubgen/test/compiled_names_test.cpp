// What the generator accepts compiles, whatever its names are: macros, words of the generated code, functions of libc.
#include <gtest/gtest.h>

#include "compiler.h"

namespace lrpc::stubgen::test {
namespace {

TEST(CompiledNames, that_are_macros_are_refused_with_a_note_or_compile) {
  Compiler compiler;
  const Names all = macros(compiler);
  ASSERT_GT(all.size(), 500U);
  for (const char* name : {"ENOENT", "PATH_MAX", "CHAR_BIT", "errno", "stdin"}) EXPECT_TRUE(all.contains(name)) << name;
  expect_refused_or_compiled(all);
}

}  // namespace
}  // namespace lrpc::stubgen::test
