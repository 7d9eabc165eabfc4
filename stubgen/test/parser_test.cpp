#include "language/parser.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include "length.h"
#include "test_support.h"

namespace lrpc::stubgen {
namespace {

using test::compile_body;
using test::compile_text;

TEST(Parser, goes_on_after_a_mistake_in_the_head) {
  for (const std::string head : {"T version 1 {", "T version {", "T {", "version 1.0 {", "12 version 1.0 {",
                                 "T version 1. {", "T version x.0 {", "T version \"1.0\" {", "T version 1.0",
                                 "T version 1.0;", "T version 1.0: {", "T version 1.0.0 {", "T 1.0 {", "{"}) {
    const auto compiled = compile_text(
        "interface " + head + "\nprocedure A(x: nothing);\nrecord R { a int32; b: bool; }\nenum E : uint8 { }\n}");
    EXPECT_TRUE(compiled.says("there is no type 'nothing'")) << head << ": " << compiled.diagnostics;
    EXPECT_TRUE(compiled.says("t:3:14: error: expected ':'")) << head << ": " << compiled.diagnostics;
    EXPECT_TRUE(compiled.says("the enum 'E' has no values")) << head << ": " << compiled.diagnostics;
    EXPECT_EQ(compiled.errors, 4U) << head << ": " << compiled.diagnostics;
  }
  for (const std::string end : {"", "T", "T version", "T version 1", "T version 1.0"}) {
    EXPECT_EQ(compile_text("interface " + end).errors, 1U) << end;
  }
}

TEST(Parser, words_of_the_language_can_be_names) {
  const auto compiled =
      compile_body("procedure procedure(in: int32, in in2: int32, out: bool, record: byte) -> (type: int8);");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  const Procedure& procedure = compiled.procedure("procedure");
  EXPECT_EQ(procedure.parameters[0].name, "in");
  EXPECT_EQ(procedure.parameters[2].name, "out");
  EXPECT_EQ(procedure.parameters[2].direction, ast::Direction::in);
}

TEST(Parser, one_run_reports_every_mistake) {
  const auto compiled = compile_body(
      "procedure A(;\n"
      "record R { a int32; b: int32; c; }\n"
      "procedure B() -> int32;\n"
      "enum E : uint8 { A B }\n"
      "wrong here;\n"
      "procedure C(a: nothing);");
  EXPECT_EQ(compiled.errors, 7U) << compiled.diagnostics;
  for (const char* place : {"t:2:", "t:3:14:", "t:3:32:", "t:4:", "t:5:", "t:6:", "t:7:"}) {
    EXPECT_TRUE(compiled.says(place)) << place << "\n" << compiled.diagnostics;
  }
}

TEST(Parser, a_missing_semicolon_is_reported_behind_what_it_should_end_and_costs_nothing_else) {
  const auto compiled = compile_text("interface T version 1.0 {\nprocedure A()\nprocedure B(x: nothing);\n}");
  EXPECT_TRUE(compiled.says("t:2:14: error: expected ';' after the procedure")) << compiled.diagnostics;
  EXPECT_TRUE(compiled.says("there is no type 'nothing'")) << compiled.diagnostics;
  EXPECT_EQ(compiled.errors, 2U);
}

TEST(Parser, a_declaration_without_its_semicolon_is_declared) {
  const auto compiled = compile_text("interface T version 1.0 {\nhandle H\ntype X = int8\nprocedure P(h: H, x: X);\n}");
  EXPECT_EQ(compiled.errors, 2U) << compiled.diagnostics;
}

TEST(Parser, a_record_whose_fields_are_mistakes_is_not_said_to_have_none) {
  for (const char* body : {"record R { a: int32, b: int32 }", "record R { int32 a; }"}) {
    const auto compiled = compile_body(body);
    EXPECT_EQ(compiled.errors, 1U) << compiled.diagnostics;
    EXPECT_FALSE(compiled.says("has no fields")) << compiled.diagnostics;
  }
}

TEST(Parser, an_enum_with_semicolons_is_one_mistake) {
  const auto compiled = compile_body("enum E : uint8 { A; B = 4; C; }\nprocedure P(e: E, x: nothing);");
  EXPECT_TRUE(compiled.says("t:2:19: error: expected '}' after the enum's values, which commas separate, found ';'"))
      << compiled.diagnostics;
  EXPECT_TRUE(compiled.says("there is no type 'nothing'")) << compiled.diagnostics;
  EXPECT_EQ(compiled.errors, 2U) << compiled.diagnostics;
}

TEST(Parser, a_list_in_parentheses_with_semicolons_is_one_mistake) {
  const struct {
    const char* body;
    const char* says;
  } lists[] = {
      {"procedure A(a: int32; b: int32; c: int8) -> (d: int32);", "t:2:21: error: expected ')' after the parameters"},
      {"procedure A(a: int32;\n in b: int32) -> (c: int32, d: int8) may_block;",
       "t:2:21: error: expected ')' after the parameters, which commas separate, found ';'"},
      {"procedure A(a: int32;);", "t:2:21: error: expected ')' after the parameters"},
      {"procedure A() -> (a: int32; b: int8) raises (E);\nerror E;", "t:2:27: error: expected ')' after the results"},
      {"procedure A() raises (E; F);\nerror E; error F;", "t:2:24: error: expected ')' after the errors"},
      {"procedure A(a: int32;\nprocedure B();", "t:2:21: error: expected ')' after the parameters"},
      {"procedure A(a: int32; type T = int8; procedure B(a: T);", "t:2:21: error: expected ')' after the parameters"},
  };
  for (const auto& list : lists) {
    const auto compiled = compile_body(list.body + std::string("\nprocedure P(x: nothing);"));
    EXPECT_TRUE(compiled.says(list.says)) << compiled.diagnostics;
    EXPECT_TRUE(compiled.says("there is no type 'nothing'")) << compiled.diagnostics;
    EXPECT_EQ(compiled.errors, 2U) << compiled.diagnostics;
  }
}

TEST(Parser, what_the_lexer_has_reported_is_one_mistake) {
  for (const char* body :
       {"type T = int8 $;", "record R { a: int8 $; b: int8; }", "procedure A(a: int8) @;", "option astacks = 5 %;",
        "handle H *;", "callback { $ procedure A(); }", "procedure A(a: int32 /* b: int32);", "record R { a: int8; /*",
        "callback { /*", "enum E : uint8 { A, /*", "/*"}) {
    const auto compiled = compile_body(body);
    EXPECT_EQ(compiled.errors, 1U) << body << compiled.diagnostics;
  }
  EXPECT_EQ(compile_text("/* interface T version 1.0 { procedure P(); }").errors, 1U);
  EXPECT_EQ(compile_text("interface T version 1.0 { procedure P(); } $").errors, 1U);
}

TEST(Parser, an_enum_that_is_not_closed_does_not_swallow_the_procedures) {
  for (const char* body :
       {"enum E : uint8 { A;\nprocedure P(x: nothing);", "enum E : uint8 { A\nprocedure P(x: nothing);"})
    EXPECT_TRUE(compile_body(body).says("there is no type 'nothing'")) << compile_body(body).diagnostics;
}

TEST(Parser, a_record_that_is_not_closed_does_not_swallow_the_procedures) {
  const auto compiled = compile_body("record R { a: int32;\nprocedure A(b: nothing);");
  EXPECT_TRUE(compiled.says("the fields of 'R' are not closed")) << compiled.diagnostics;
  EXPECT_TRUE(compiled.says("there is no type 'nothing'")) << compiled.diagnostics;
}

TEST(Parser, what_is_not_supported_yet_says_what_to_use_instead) {
  for (const char* type : {"sequence<int32, 4>", "optional<int32>", "map<byte, bool>", "ref int32", "ref<int32>", "fd",
                           "union { a: int32; }", "union { a: int32; }, b: int8"}) {
    const auto compiled = compile_body("procedure A(a: " + std::string(type) + ");");
    EXPECT_TRUE(compiled.says("is not supported yet")) << type << compiled.diagnostics;
    EXPECT_TRUE(compiled.says("note: ")) << type;
    EXPECT_EQ(compiled.errors, 1U) << type << compiled.diagnostics;
  }
  EXPECT_TRUE(compile_body("union U { a: int32; b: int8; }").says("union is not supported yet"));
}

TEST(Parser, a_file_without_an_interface_says_so) {
  EXPECT_TRUE(compile_text("").says("t:1:1: error: expected 'interface', found the end of the file"));
  EXPECT_TRUE(compile_text("interface A version 1.0 { procedure B(); } interface C version 1.0 { }")
                  .says("one file holds one interface"));
  EXPECT_TRUE(compile_text("interface A version 1.0 { procedure B();").says("'}' is missing"));
}

TEST(Parser, clauses_of_a_procedure_come_in_any_order) {
  const auto compiled =
      compile_body("error E;\nprocedure A(in d: bytes<9000>) astack_size 4096 may_block raises (E) astacks 9;");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  const Procedure& procedure = compiled.procedure("A");
  EXPECT_TRUE(procedure.may_block);
  EXPECT_EQ(procedure.astacks, 9U);
  EXPECT_EQ(procedure.astack_size, 4096U);
  EXPECT_EQ(procedure.raises.size(), 1U);
}

/// With a quarter of the usual stack, a quarter of the longest file is enough.
void* compile_deep_nesting(void* length) {
  for (const char* opening : {"{", "(", "[", "<", "record A {", "procedure A(", "a: sequence<", "callback {", "/*"}) {
    std::string text = "interface T version 1.0 {";
    while (text.size() < *static_cast<const std::size_t*>(length)) text += opening;
    EXPECT_FALSE(compile_text(text).interface) << opening;
  }
  return nullptr;
}

TEST(Parser, deep_nesting_costs_no_stack) {
  std::size_t length = testing_lrpc::long_tests() ? 900'000 : 225'000;
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 2 << 20), 0);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, &compile_deep_nesting, &length), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

TEST(Parser, a_file_over_the_limit_is_refused) {
  // lrpc-stubgen reads one byte over the limit, and does not know how many there are.
  EXPECT_TRUE(compile_text(std::string(Source::kMaxBytes + 1, ' ')).says("the file has more than 1048576 bytes\n"));
}

}  // namespace
}  // namespace lrpc::stubgen
