#include "layout/checker.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <set>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "test_support.h"

namespace lrpc::stubgen {
namespace {

using test::compile_body;
using test::compile_text;

static_assert(limits::kMaxProcedures == lrpc::limits::kMaxProcedures);
static_assert(limits::kMaxAStacksPerClass == lrpc::limits::kMaxAStacksPerClass);
static_assert(limits::kMaxImageSize == lrpc::limits::kMaxImageSize);
static_assert(limits::kMaxTailSize == lrpc::limits::kMaxTailSize);
static_assert(limits::kMaxRegionSize == lrpc::limits::kMaxRegionSize);
static_assert(limits::kMaxExportedText == lrpc::shim::kMaxExportedText);
static_assert(kStubRevision == lrpc::detail::kStubRevision);

/// A body, and what the diagnostics must say about it.
struct Mistake {
  const char* body;
  const char* says;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, are_reported_with_their_place) {
  const auto compiled = compile_body(GetParam().body);
  EXPECT_FALSE(compiled.interface) << GetParam().body;
  EXPECT_TRUE(compiled.says(GetParam().says)) << GetParam().body << "\n" << compiled.diagnostics;
}

INSTANTIATE_TEST_SUITE_P(
    Checker, Mistakes,
    testing::Values(
        Mistake{"procedure A(); procedure A();", "t:2:26: error: 'A' is declared twice"},
        Mistake{"record A { x: int8; } enum A : uint8 { B }", "'A' is declared twice"},
        Mistake{"procedure A(x: int8, x: int8);", "'x' is declared twice"},
        Mistake{"procedure A(x: int8) -> (x: int8);", "'x' is declared twice"},
        Mistake{"record R { x: int8; x: int8; }", "'x' is declared twice"},
        Mistake{"enum E : uint8 { A, A }", "'A' is declared twice"},
        Mistake{"procedure A(x: int);", "types say their size"},
        Mistake{"procedure A(x: Nothing);", "t:2:16: error: there is no type 'Nothing'"},
        Mistake{"procedure delete();", "'delete' is a word of C++"},
        Mistake{"procedure A(errno: int8);", "'errno' is a macro"},
        Mistake{"procedure A(x_: int8);", "may not begin or end with '_'"},
        Mistake{"procedure A(_x: int8);", "may not begin or end with '_'"},
        Mistake{"procedure a__b();", "nor hold '__'"}, Mistake{"procedure import();", "'import' is a word of C++"},
        Mistake{"record std { x: int8; }", "'std' cannot be the name of a type"},
        Mistake{"enum lrpc : uint8 { A }", "'lrpc' cannot be the name of a type"},
        Mistake{"handle lrpc;", "'lrpc' cannot be the name of a type"},
        Mistake{"record int8 { x: bool; }", "'int8' is a built-in type"},
        Mistake{"procedure map();", "'map' is kept for a type of a later version"},
        Mistake{"record A { x: int8; } procedure A();", "'A' is declared twice"},
        Mistake{"record A { x: int8; } callback { procedure A(); }", "'A' is declared twice"},
        Mistake{"enum E : uint8 { A = 256 }", "256 is no value of the enum's type, which goes from 0 to 255"},
        Mistake{"enum E : uint8 { A = 255, B }", "256 is no value of the enum's type"},
        Mistake{"enum E : int8 { A = -129 }", "-129 is no value"},
        Mistake{"enum E : uint64 { A = 18446744073709551615, B }", "'B' would be one more than 18446744073709551615"},
        Mistake{"enum E : uint8 { A = 1, B = 1 }", "'B' has the value 1 of 'A'"},
        Mistake{"enum E : uint8 { }", "has no values"}, Mistake{"enum E { A }", "does not say what integer it is"},
        Mistake{"enum E : float32 { A }", "'float32' is no integer type"},
        Mistake{"enum E : Nothing { A }", "'Nothing' is no integer type"},
        Mistake{"type X = int8 range 0 .. 128;", "128 is outside of int8, which goes from -128 to 127"},
        Mistake{"type X = uint8 range -1 .. 5;", "-1 is outside of uint8"},
        Mistake{"type X = int8 range 5 .. 4;", "the range is empty"},
        Mistake{"type X = bool range 0 .. 1;", "'bool' has no range"},
        Mistake{"type X = uint8 range 0 .. 9; type Y = X range 0 .. 10;", "10 is outside of X, which goes from 0 to 9"},
        Mistake{"type X = bytes<4>;", "bytes<N> cannot be named by 'type'"}, Mistake{"record R { }", "has no fields"},
        Mistake{"record R { r: R; }", "'R' contains itself"},
        Mistake{"record A { b: B; } record B { c: A[2]; }", "contains itself"},
        Mistake{"type A = B; type B = A;", "contains itself"},
        Mistake{"type A = B[2]; type B = A[2];", "contains itself"},
        Mistake{"record R { data: bytes<4>; }", "bytes<N> cannot be a field"},
        Mistake{"handle H; record R { h: H; }", "a handle cannot be a field"},
        Mistake{"handle H; procedure A(h: H[4]);", "a handle cannot be an array's element"},
        Mistake{"error E { x: int8; } procedure A(e: E);", "cannot be a parameter"},
        Mistake{"error E { x: int8; } record R { e: E; }", "cannot be a field"},
        Mistake{"procedure A(x: byte[0]);", "an array cannot have 0 elements"},
        Mistake{"procedure A(x: byte[-1]);", "an array cannot have -1 elements"},
        Mistake{"procedure A(x: byte[100000]);", "does not fit an A-stack"},
        Mistake{"procedure A(x: int64[10000]);", "'int64[10000]' has 80000 bytes"},
        Mistake{"procedure A(x: byte[]);", "the array says no length"},
        Mistake{"procedure A(x: byte[2][2][2][2][2]);", "at most 4 dimensions"},
        Mistake{"type B = byte[2][2][2]; procedure A(x: B[2][2]);", "more than 4 dimensions"},
        Mistake{"procedure A(x: byte[60000], y: byte[60000]);", "have 120000 bytes"},
        Mistake{"procedure A(x: string);", "'string' says no bound"},
        Mistake{"procedure A(x: string<0>);", "the bound of string is from 1 to 65535, not 0"},
        Mistake{"procedure A(x: string<65536>);", "not 65536"},
        Mistake{"procedure A(x: bytes<268435457>);", "the bound of bytes"},
        Mistake{"procedure A(x: int32<4>);", "'int32' takes no bound"},
        Mistake{"procedure A(in x: bytes<268435456>, in y: bytes<268435456>);", "of out-of-band tail"},
        Mistake{"procedure A(in x: bytes<268435456>);", "the limit for a region is"},
        Mistake{"procedure A(x: byte[2000], in y: bytes<9>);", "say 'astack_size"},
        Mistake{"procedure A() raises (Nothing);", "there is no error 'Nothing'"},
        Mistake{"record R { x: int8; } procedure A() raises (R);", "'R' is no error"},
        Mistake{"error E; procedure A() raises (E, E);", "'E' is raised twice"},
        Mistake{"handle H; procedure A(inout h: H);", "cannot be inout"},
        Mistake{"procedure A(x: int32 closes);", "'closes' is for a handle"},
        Mistake{"handle H; procedure A() -> (h: H closes);", "'closes' is for a handle that the procedure takes"},
        Mistake{"procedure A(x: int32 uninterpreted);", "cannot be uninterpreted"},
        Mistake{"procedure A(x: bool[4] uninterpreted);", "cannot be uninterpreted"},
        Mistake{"procedure A(in x: string<4> uninterpreted);", "cannot be uninterpreted"},
        Mistake{"procedure A() -> (x: bytes<4> uninterpreted);", "not for results"},
        Mistake{"procedure A() -> (in x: int8);", "a result cannot be 'in'"},
        Mistake{"procedure A() may_block may_block;", "'may_block' is said twice"},
        Mistake{"procedure A() astacks 0;", "the number of A-stacks is from 1 to 1024, not 0"},
        Mistake{"procedure A() astack_size 63;", "is from 64 to 65536, not 63"},
        Mistake{"option astacks = 5000;", "not 5000"}, Mistake{"option astacks = \"five\";", "takes a number"},
        Mistake{"option astacks = 5; option astacks = 5;", "set twice"},
        Mistake{"option colour = 1;", "there is no option 'colour'"},
        Mistake{"option namespace = \"a:b\";", "not a C++ namespace"},
        Mistake{"option namespace = \"a::\";", "not a C++ namespace"},
        Mistake{"option namespace = \"a::std\";", "'std' cannot be the name of a namespace"},
        Mistake{"option namespace = 5;", "takes a text"}));

/// `levels` records, each containing the previous one; the innermost is declared first or last.
std::string records_within_records(std::uint64_t levels, bool innermost_first) {
  std::string text;
  for (std::uint64_t i = 0; i < levels; ++i) {
    const std::string one = "record R" + std::to_string(i) +
                            " { x: " + (i == 0 ? std::string("int8") : "R" + std::to_string(i - 1)) + "; } ";
    text = innermost_first ? text + one : one + text;
  }
  return text + "procedure A(x: R" + std::to_string(levels - 1) + ");";
}

TEST(Checker, types_lie_within_each_other_up_to_a_limit_in_either_order) {
  for (const bool innermost_first : {true, false}) {
    EXPECT_TRUE(compile_body(records_within_records(limits::kMaxNesting, innermost_first)).interface);
    for (const std::uint64_t levels : {limits::kMaxNesting + 1, 3 * limits::kMaxNesting}) {
      const auto compiled = compile_body(records_within_records(levels, innermost_first));
      EXPECT_FALSE(compiled.interface) << levels;
      EXPECT_TRUE(compiled.says("more than 64 types lie within each other")) << compiled.diagnostics;
    }
  }
}

TEST(Checker, the_order_of_declarations_does_not_matter) {
  const auto compiled = compile_body("procedure A(x: R); record R { a: S[2]; } type S = E; enum E : int8 { X }");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  std::string order;
  for (const Type* type : compiled.interface->ordered) order += type->name;
  EXPECT_EQ(order, "ESR");
}

/// The generated code renames its own declarations when an interface declares the same name.
TEST(Checker, the_words_of_the_generated_code_are_free) {
  for (const std::string name :
       {"impl",        "context",    "image",           "call",   "status",    "get_bool", "Entry",
        "Impl",        "Starter",    "signature",       "kStubs", "Client",    "layout",   "Implementation",
        "export_to",   "serve_over", "import_over",     "kPdl",   "start",     "all",      "binding",
        "Callback",    "callback",   "serve_callbacks", "T",      "P_outcome", "PResults", "H_tag",
        "string_field"}) {
    for (const std::string& body :
         {"record " + name + " { a: int8; }", "enum " + name + " : uint8 { A }", "error " + name + " { a: int8; }",
          "handle " + name + ";", "type " + name + " = int8;"}) {
      const auto compiled = compile_body(body + "handle H; procedure P(" + name + ": int8) -> (a: int8, b: int8);" +
                                         "callback { procedure Q(" + name + ": int8); }");
      EXPECT_TRUE(compiled.interface) << body << "\n" << compiled.diagnostics;
    }
    const auto compiled = compile_body("record R { " + name + ": int32; R: bool; } procedure " + name + "(" + name +
                                       ": int8); callback { procedure " + name + "(" + name + ": int8); }");
    EXPECT_TRUE(compiled.interface) << name << "\n" << compiled.diagnostics;
    const auto around = compile_text("interface " + name + " version 1.0 { option namespace = \"" + name + "::" + name +
                                     "\"; procedure P(); }");
    EXPECT_TRUE(around.interface) << name << "\n" << around.diagnostics;
  }
}

TEST(Checker, the_names_of_namespaces_that_the_generated_code_uses_are_free_where_they_hide_nothing) {
  for (const std::string name : {"std", "lrpc"}) {
    const auto compiled = compile_body("enum E : int8 { " + name + " } record R { " + name + ": E; } procedure " +
                                       name + "(" + name + ": R); callback { procedure " + name + "(); }");
    EXPECT_TRUE(compiled.interface) << compiled.diagnostics;
    EXPECT_TRUE(compile_text("interface " + name + " version 1.0 { procedure P(); }").says("the name of a namespace"));
  }
}

TEST(Checker, every_place_of_a_variable_parameter_has_a_constant_of_its_own) {
  const auto compiled = compile_body(
      "procedure A(in b_c: string<4>, in b_c_2: string<4>, in raised_ranges: bytes<4>); procedure A_b(in c: string<4>);"
      "procedure A_call(in ranges: string<4>);");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  std::set<std::string> constants{"kA_raised_ranges", "kA_call_ranges"};
  for (const Procedure& procedure : compiled.interface->procedures)
    for (const Parameter& parameter : procedure.parameters)
      EXPECT_TRUE(constants.insert(parameter.constant).second) << parameter.constant;
  EXPECT_EQ(compiled.procedure("A").parameters[0].constant, "kA_b_c");
}

TEST(Checker, what_is_generated_is_called_otherwise_only_where_the_interface_has_its_name) {
  const auto compiled = compile_body(
      "record Client { x: int8; } procedure A(A_outcome: int8) -> (x: int8, y: int8); procedure AResults();"
      "callback { procedure layout(); }");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  EXPECT_EQ(compiled.interface->given->own("Client"), "Client_");
  EXPECT_EQ(compiled.interface->given->own("layout"), "layout");
  EXPECT_EQ(compiled.interface->callback->given->own("Client"), "Client_");
  EXPECT_EQ(compiled.interface->callback->given->own("layout"), "layout_");
  EXPECT_EQ(compiled.procedure("A").outcome_class(), "A_outcome_");
  EXPECT_EQ(compiled.procedure("A").results_class(), "AResults_");
  EXPECT_EQ(compiled.procedure("AResults").outcome_class(), "AResults_outcome");
}

TEST(Checker, a_type_is_spelled_with_its_path_only_if_a_field_or_a_parameter_hides_it) {
  const auto compiled = compile_body(
      "option namespace = \"a::b\"; record R { x: int8; } record S { R: R; } enum E : int8 { A } handle H;"
      "procedure A(E: E); callback { procedure B(x: S); }");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  EXPECT_EQ(compiled.type("R").spelled, "::a::b::T::R");
  EXPECT_EQ(compiled.type("E").spelled, "::a::b::T::E");
  EXPECT_EQ(compiled.type("S").spelled, "S");
  EXPECT_EQ(compiled.type("H").spelled, "H");
}

TEST(Checker, a_namespace_has_at_most_256_characters) {
  const auto compiled_with = [](std::size_t inner) {
    return compile_body("option namespace = \"" + std::string(127, 'a') + "::" + std::string(inner, 'b') + "\";");
  };
  EXPECT_TRUE(compiled_with(127).interface) << compiled_with(127).diagnostics;
  EXPECT_TRUE(compiled_with(128).says("this namespace has 257 characters; the limit is 256"));
}

/// KiB: the most memory that this process has had so far.
long most_memory() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

TEST(Checker, a_name_of_an_interface_that_is_too_long_does_not_take_its_length_for_each_type) {
  std::string text = "interface " + std::string(60'000, 'I') + " version 1.0 {\n";
  for (int i = 0; i < 2'000; ++i) text += "record r" + std::to_string(i) + " { r" + std::to_string(i) + ": int8; }\n";
  const long before = most_memory();
  EXPECT_TRUE(compile_text(text + "procedure P(); }").says("this name has 60000 characters; the limit is 128"));
  EXPECT_LT(most_memory() - before, 64 * 1024);
}

TEST(Checker, a_version_is_two_numbers_of_16_bits) {
  EXPECT_TRUE(compile_text("interface T version 65536.0 { procedure A(); }").says("not 65536"));
  EXPECT_TRUE(compile_text("interface T version -1.0 { procedure A(); }").says("not -1"));
}

TEST(Checker, an_interface_without_procedures_is_refused) {
  EXPECT_TRUE(compile_text("interface T version 1.0 { }").says("has 0 procedures"));
}

auto compiled_with(int procedures) {
  std::string body;
  for (int i = 0; i < procedures; ++i) body += "procedure " + std::string(100, 'P') + std::to_string(i) + "();\n";
  return compile_body(body);
}

TEST(Checker, a_declaration_that_may_be_too_long_for_an_export_is_warned_of) {
  const auto longer = compiled_with(1'200);
  EXPECT_TRUE(longer.interface && longer.interface->canonical.size() > limits::kMaxExportedText);
  EXPECT_TRUE(longer.says("t:1:11: warning: the declaration has ")) << longer.diagnostics;
  EXPECT_TRUE(longer.says("with more than 129024 it may be too long to be exported under a name"));
  const auto shorter = compiled_with(1'000);
  EXPECT_TRUE(shorter.interface) << shorter.diagnostics;
  EXPECT_EQ(shorter.diagnostics, "");
}

/// clang -pedantic warns of literals of more than 65,536 characters.
TEST(Checker, a_declaration_that_is_a_long_literal_keeps_compilers_from_warning_of_it) {
  for (const int procedures : {500, 600}) {
    const auto compiled = compiled_with(procedures);
    ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
    const std::string types = generate(*compiled.interface, "t")[0].text;
    EXPECT_EQ(types.find("ignored \"-Woverlength-strings\"") != std::string::npos,
              compiled.interface->canonical.size() > 65'536);
  }
}

TEST(Checker, the_same_declaration_has_the_same_hash_whatever_its_comments_and_defaults) {
  const auto one = compile_text("interface T version 1.0 { procedure A(x: int32) -> (y: bool); }");
  const auto other = compile_text(
      "/// Doc.\ninterface T version 1.0 { option astacks = 5; option namespace = \"n\";\n procedure A(in x : int32, "
      "out y: bool) ; };");
  const auto different = compile_text("interface T version 1.0 { procedure A(x: int32) -> (z: bool); }");
  EXPECT_EQ(one.interface->hash, other.interface->hash);
  EXPECT_NE(one.interface->hash, different.interface->hash);
}

TEST(Checker, the_canonical_text_is_an_interface_file_and_its_own_canonical_text) {
  const auto first = compile_body(
      "option astacks = 7; enum E : int64 { A = -9223372036854775808, B } type P = uint8 range 1 .. 9; type L = "
      "string<9>[2];"
      "record R { e: E; p: P[2][3]; } error X; error Y { r: R; } handle H;"
      "procedure A(h: H closes, in b: bytes<70000> uninterpreted, inout c: L) -> (d: R) raises (X, Y) may_block "
      "astacks 3 astack_size 999;");
  ASSERT_TRUE(first.interface) << first.diagnostics;
  const auto second = compile_text(first.interface->canonical);
  ASSERT_TRUE(second.interface) << second.diagnostics << first.interface->canonical;
  EXPECT_EQ(second.interface->canonical, first.interface->canonical);
}

TEST(Checker, what_is_exported_under_a_name_that_is_free_in_its_namespace_is_read) {
  const auto file = compile_text("interface log version 1.0 { option namespace = \"acme\"; procedure P(); }");
  ASSERT_TRUE(file.interface) << file.diagnostics;
  EXPECT_FALSE(compile_text(file.interface->canonical).interface);
  Diagnostics diagnostics;
  const auto exported = compile({"log", file.interface->canonical}, diagnostics, Origin::server);
  ASSERT_TRUE(exported) << diagnostics.text("log");
  EXPECT_EQ(exported->hash, file.interface->hash);
}

TEST(Checker, a_long_chain_of_types_and_a_wide_dag_take_linear_work) {
  std::string chain = "type A0 = uint8;";
  for (int i = 1; i < 8000; ++i) chain += "type A" + std::to_string(i) + " = A" + std::to_string(i - 1) + ";\n";
  EXPECT_TRUE(compile_body(chain).says("more than 64 types lie within each other"));
  std::string dag = "record R0 { a: uint8; }";
  for (int i = 1; i < 60; ++i) {
    const std::string below = std::to_string(i - 1);
    dag += "record R" + std::to_string(i) + " { a: R" + below + "; b: R" + below + "; }\n";
  }
  EXPECT_TRUE(compile_body(dag).says("an A-stack holds at most"));
}

}  // namespace
}  // namespace lrpc::stubgen
