// Whatever the generator accepts compiles, with any names (macros, words of the generated code), also without
// exceptions.
#include <gtest/gtest.h>

#include "compiler.h"
#include "test_support.h"

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

TEST_P(CompiledName, that_stands_in_the_generated_code_is_free_and_compiles) {
  Names all = generated_identifiers();
  ASSERT_GT(all.size(), 200U);
  for (const char* name : {"impl", "image", "Code", "lrpc", "std", "kPdl", "get_bool"})
    EXPECT_TRUE(all.contains(name)) << name;
  all.insert({"final", "override", "import", "module"});            // words of C++ in some places only
  all.insert({"Entry", "Impl", "Starter", "kStubs", "signature"});  // names of the generated code if a '_' follows
  expect_refused_or_compiled(GetParam(), all, true);
}

class MovedName : public testing::TestWithParam<Place> {};

TEST_P(MovedName, compiles_where_nothing_else_has_moved) {
  const Names moved = expect_free_one_by_one(GetParam(), generated_identifiers());
  for (const char* name : {"Client", "kPdl", "layout", "Implementation", "start", "binding", "import_over"})
    EXPECT_TRUE(moved.contains(name)) << name;
  EXPECT_EQ(moved.contains("all"), GetParam().what != "callback_procedure");  // a callback's client has no all()
}

class CompiledNamespace : public testing::TestWithParam<Place> {};

TEST_P(CompiledNamespace, that_is_a_name_of_the_included_headers_is_refused_with_a_note_or_compiles) {
  Compiler compiler;
  Names all = included_identifiers(compiler);
  ASSERT_GT(all.size(), 2000U);
  all.insert({"time", "index", "read", "main", "exit", "log", "select"});
  expect_refused_or_compiled(GetParam(), all);
}

TEST(CompiledNamespaces, that_is_a_function_of_the_c_library_needs_a_namespace_around_it) {
  for (const std::string name :
       {"time", "index", "read", "main", "exit", "environ", "log", "select", "size_t", "FILE"}) {
    const auto bare = compile_text("interface " + name + " version 1.0 { procedure P(); }");
    EXPECT_TRUE(bare.says("'" + name + "' cannot be a C++ namespace") && bare.says("note: ")) << name;
    EXPECT_TRUE(
        compile_text("interface " + name + " version 1.0 { option namespace = \"a\"; procedure P(); }").interface)
        << name;
  }
}

TEST(CompiledStubs, need_no_exceptions_and_those_of_a_client_no_type_information) {
  const std::string procedures = R"(
    handle Thing; error Missing { name: string<20>; }
    procedure Get(in name: string<20>, inout more: bytes<9>) -> (data: bytes<99>, size: int32) raises (Missing);
    procedure Give() -> (thing: Thing);
    oneway procedure Log(in text: string<20>);)";
  Compiler compiler;
  compiler.generate("plain", "interface Plain version 1.0 {" + procedures + "}");
  compiler.generate("called", "interface Called version 1.0 {" + procedures + "callback { procedure Done(); } }");
  EXPECT_EQ(compiler.output("-fsyntax-only -fno-exceptions -fno-rtti", {"plain.client.h"}), "");
  EXPECT_EQ(compiler.output("-fsyntax-only -fno-exceptions", all_of("called")), "");
}

TEST(CompiledStubs, of_another_version_are_refused_by_the_compiler) {
  const auto compiled = compile_text("interface Dated version 1.0 { procedure P(); }");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  std::string types = stubgen::generate(*compiled.interface, "dated")[0].text;
  const std::string revision = "kStubRevision == " + std::to_string(kStubRevision);
  const std::size_t at = types.find(revision);
  ASSERT_NE(at, std::string::npos) << types;
  Compiler compiler;
  EXPECT_EQ(compiler.compile({}, types).find("error"), std::string::npos);
  types.replace(at, revision.size(), "kStubRevision == " + std::to_string(kStubRevision - 1));
  EXPECT_NE(compiler.compile({}, types).find("made by another version of lrpc-stubgen"), std::string::npos);
}

std::vector<Place> namespaces() {
  std::vector<Place> found;
  for (const Place& place : places()) {
    if (place.together == nullptr) found.push_back(place);
  }
  return found;
}

/// The places whose names share a scope with names of the generated code.
std::vector<Place> side_by_side() {
  std::vector<Place> found;
  for (const Place& place : places()) {
    for (const std::string_view one : {"type", "handle", "procedure", "callback_procedure"})
      if (place.what == one) found.push_back(place);
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(Place, MovedName, testing::ValuesIn(side_by_side()),
                         [](const auto& place) { return std::string(place.param.what); });

INSTANTIATE_TEST_SUITE_P(Place, CompiledNamespace, testing::ValuesIn(namespaces()),
                         [](const auto& place) { return std::string(place.param.what); });

INSTANTIATE_TEST_SUITE_P(Place, CompiledName, testing::ValuesIn(places()),
                         [](const auto& place) { return std::string(place.param.what); });

/// If the type hid the variable, a stub could make a call without checking its arguments.
TEST(CompiledStub, compiles_without_a_warning_where_a_type_is_called_like_one_of_its_variables) {
  Compiler compiler;
  std::string code;
  for (const std::string name : {"binding", "context", "fuzzer", "impl", "implementation", "input", "name", "offered",
                                 "options", "server", "socket", "value", "image", "outcome", "to"}) {
    const std::string stem = "shadow_" + name;
    compiler.generate(stem, "interface Shadow" + name + " version 1.0 { type " + name +
                                " = int32 range 1 .. 5; procedure P(a: " + name +
                                "); callback { procedure Q(a: " + name + "); } }");
    code += "#define LLVMFuzzerTestOneInput fuzz_" + stem + "\n";
    for (const std::string& file : all_of(stem)) code += "#include \"" + file + "\"\n";
    code += "#undef LLVMFuzzerTestOneInput\n";
  }
  EXPECT_EQ(compiler.output("-fsyntax-only -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion", {}, code), "");
}

TEST(CompiledStub, compiles_without_a_warning_where_a_parameter_is_called_like_something_of_the_generated_code) {
  Compiler compiler;
  std::string code;
  for (const std::string procedures : {
           "procedure P(kPdl: int32) -> (a: int8, b: int8);",
           "procedure P(Client: int32, inout b: bytes<3>) -> (layout: int8, kPdl: bool);",
           "procedure P(Q_outcome: int8, QResults: int8, Callback: int8, callback: int8, P: int8) -> (Q: int8);"
           "procedure Q(Implementation: int8, export_to: int8, serve_over: int8, start: int8, all: int8, binding: int8,"
           " import_over: int8, serve_callbacks: int8) -> (a: int8, b: int8);",
       }) {
    const std::string stem = "named" + std::to_string(code.size());
    compiler.generate(stem,
                      "interface " + stem + " version 1.0 { " + procedures + " callback { " + procedures + " } }");
    code += "#define LLVMFuzzerTestOneInput fuzz_" + stem + "\n";
    for (const std::string& file : all_of(stem)) code += "#include \"" + file + "\"\n";
    code += "#undef LLVMFuzzerTestOneInput\n";
  }
  EXPECT_EQ(compiler.output("-fsyntax-only -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast", {}, code), "");
}

TEST(CompiledStub, that_hands_its_check_what_that_does_not_take_is_refused_by_the_compiler) {
  Compiler compiler;
  const auto check_with = [&](const std::string& argument) {
    return compiler.compile({"lrpc/detail/client/call/stub.h"}, R"(
struct P {
  static lrpc::client::Refusal check_(const int&) { return {}; }
};
struct Other {};
lrpc::client::Refusal refusal() { return lrpc::client::check_arguments<P>()" +
                                                                    argument + "); }\n");
  };
  EXPECT_EQ(check_with("1"), "");
  EXPECT_NE(check_with("Other()").find("error"), std::string::npos);
}

}  // namespace
}  // namespace lrpc::stubgen::test
