#include "layout/layout.h"

#include <gtest/gtest.h>

#include "lrpc/detail/shim/call/region.h"
#include "test_support.h"

namespace lrpc::stubgen {
namespace {

using test::compile_body;

TEST(Layout, fixed_values_lie_at_their_natural_alignment_and_the_size_is_exact) {
  const auto compiled = compile_body("procedure A(a: int8, b: int32, inout c: int16) -> (d: int64, e: bool);");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  const Procedure& procedure = compiled.procedure("A");
  std::vector<std::uint64_t> offsets;
  for (const Parameter& parameter : procedure.parameters) offsets.push_back(parameter.offset);
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 4, 8, 16, 24}));
  EXPECT_EQ(procedure.image_size, 25U);
  EXPECT_EQ(procedure.call_ranges.size(), 2U);
  EXPECT_EQ(procedure.call_ranges[1].offset, 4U);
  EXPECT_EQ(procedure.call_ranges[1].size, 6U);
  EXPECT_EQ(procedure.return_ranges.size(), 2U);
}

TEST(Layout, records_are_laid_out_like_structs) {
  const auto compiled = compile_body("record R { a: uint8; b: uint64; c: uint16; s: string<5>; } procedure A(r: R);");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  const Type& record = compiled.type("R");
  EXPECT_EQ(record.fields[1].offset, 8U);
  EXPECT_EQ(record.fields[3].offset, 20U);
  EXPECT_EQ(record.alignment, 8U);
  EXPECT_EQ(record.size, 32U);
  EXPECT_EQ(compiled.type("string<5>").size, 12U);
}

TEST(Layout, errors_overlay_the_results_and_leave_the_arguments_alone) {
  const auto compiled =
      compile_body("error E { x: int64[4]; } error F { x: int8; } procedure A(a: int32) -> (b: int8) raises (E, F);");
  const Procedure& procedure = compiled.procedure("A");
  EXPECT_EQ(procedure.raises[0].offset, 8U);
  EXPECT_EQ(procedure.raises[1].offset, 4U);
  EXPECT_EQ(procedure.image_size, 40U);
}

TEST(Layout, bounds_that_fit_one_ethernet_packet_get_whole_windows_and_an_exact_size) {
  const auto compiled = compile_body("procedure A(in a: string<10>, in b: bytes<100>) -> (c: bytes<30>);");
  const Procedure& procedure = compiled.procedure("A");
  EXPECT_EQ(procedure.parameters[0].window.inline_offset, 16U);
  EXPECT_EQ(procedure.parameters[0].window.inline_capacity, 16U);
  EXPECT_EQ(procedure.parameters[1].window.inline_capacity, 104U);
  EXPECT_EQ(procedure.parameters[2].window.inline_capacity, 32U);
  EXPECT_EQ(procedure.image_size, 16U + 16 + 104 + 32);
  EXPECT_EQ(procedure.tail_size, 0U);
}

TEST(Layout, a_larger_one_makes_slot_and_packet_the_same_size_and_gets_a_place_in_the_tail) {
  const auto compiled = compile_body("procedure A(in a: bytes<1000000>, in b: string<8>, in c: bytes<5000>);");
  const Procedure& procedure = compiled.procedure("A");
  EXPECT_EQ(procedure.image_size, 1484U);
  EXPECT_EQ(procedure.parameters[1].window.inline_capacity, 8U);
  EXPECT_EQ(procedure.parameters[0].window.inline_capacity, procedure.parameters[2].window.inline_capacity);
  EXPECT_EQ(procedure.parameters[0].window.inline_capacity, (1484U - 16 - 8) / 2 / 8 * 8);
  EXPECT_EQ(procedure.parameters[0].window.tail_offset, 0U);
  EXPECT_EQ(procedure.parameters[2].window.tail_offset, 1'000'000U);  // a multiple of 64
  EXPECT_EQ(procedure.tail_size % 64, 0U);
}

TEST(Layout, a_result_that_must_know_its_place_takes_no_window_that_it_does_not_fit) {
  const auto compiled = compile_body("procedure A(in a: bytes<5000>) -> (b: bytes<5000>);");
  const Procedure& procedure = compiled.procedure("A");
  EXPECT_EQ(procedure.parameters[1].window.inline_capacity, 0U);
  EXPECT_EQ(procedure.parameters[0].window.inline_capacity, (1484U - 8) / 8 * 8);
}

TEST(Layout, windows_stay_inside_the_image_and_apart_for_every_shape) {
  for (std::uint64_t seed = 1; seed < 400; ++seed) {
    std::uint64_t state = seed * 0x9e37'79b9'7f4a'7c15;
    const auto next = [&](std::uint64_t limit) {
      state = state * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
      return (state >> 33) % limit;
    };
    std::string text = "procedure A(";
    const std::uint64_t count = 1 + next(9);
    for (std::uint64_t i = 0; i < count; ++i) {
      const char* directions[] = {"in", "inout", "out"};
      text += (i == 0 ? "" : ", ") + std::string(directions[next(3)]) + " p" + std::to_string(i) +
              (next(2) == 0 ? ": string<" : ": bytes<") + std::to_string(1 + next(3000) / (1 + next(50))) + ">";
    }
    const auto compiled = compile_body(text + ");");
    ASSERT_TRUE(compiled.interface) << text << compiled.diagnostics;
    const Procedure& procedure = compiled.procedure("A");
    std::uint64_t end = procedure.fixed_size;
    std::uint64_t tail_end = 0;
    for (const Parameter& parameter : procedure.parameters) {
      EXPECT_GE(parameter.window.inline_offset, end) << text;
      EXPECT_EQ(parameter.window.inline_offset % 8, 0U);
      end = parameter.window.inline_offset + parameter.window.inline_capacity;
      if (parameter.type->bound > parameter.window.inline_capacity) {
        EXPECT_GE(parameter.window.tail_offset, tail_end) << text;
        EXPECT_EQ(parameter.window.tail_offset % 64, 0U);
        tail_end = parameter.window.tail_offset + parameter.type->bound;
      }
    }
    EXPECT_LE(end, procedure.image_size) << text;
    EXPECT_LE(procedure.image_size, 1484U) << text;
    EXPECT_LE(tail_end, procedure.tail_size) << text;
  }
}

TEST(Layout, procedures_of_similar_size_share_a_class_with_the_largest_of_everything) {
  const auto compiled = compile_body(
      "procedure A(a: byte[20]); procedure B(a: byte[48]) astacks 9; procedure C(a: byte[49]);"
      "procedure D(a: byte[1200]); procedure E(in a: bytes<2000>); procedure F(in a: bytes<9000>) astacks 2;");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  const auto& classes = compiled.interface->classes;
  ASSERT_EQ(classes.size(), 3U);
  EXPECT_EQ(classes[0].image_size, 48U);
  EXPECT_EQ(classes[0].count, 9U);
  EXPECT_EQ(classes[1].image_size, 49U);
  EXPECT_EQ(classes[2].image_size, 1484U);
  EXPECT_EQ(classes[2].count, 5U);
  EXPECT_EQ(classes[2].tail_size, (9000U + 63) / 64 * 64);
  EXPECT_EQ(compiled.procedure("Last").astack_class, 0U);
}

TEST(Layout, the_stack_need_covers_every_copy_that_the_entry_stub_makes) {
  const auto compiled = compile_body(
      "record R { a: byte[1000]; } error E { a: byte[30000]; }"
      "procedure Arguments(in a: string<65535>, in b: string<65535>, inout c: R);"
      "procedure Results(in a: string<1000>) -> (b: R, c: string<2000>);"
      "procedure Raises() -> (a: R) raises (E);");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  const auto expect_need = [&](const char* name, std::uint64_t copies) {
    EXPECT_GE(compiled.procedure(name).stack_need, copies) << name;
    EXPECT_LE(compiled.procedure(name).stack_need, copies + copies / 4 + 2048) << name;
  };
  expect_need("Arguments", 2 * 65'540 + 1000);
  expect_need("Results", 1004 + 3 * (1000 + 2004));
  expect_need("Raises", 3 * 30'000);
  expect_need("Last", 0);
}

TEST(Layout, arrays_of_strings_that_only_a_parameter_spells_have_their_size) {
  const auto compiled = compile_body("procedure A(in a: string<10>[2], b: string<5>[2][3]) -> (c: string<20>[1]);");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  EXPECT_EQ(compiled.procedure("A").image_size, 2U * 16 + 6 * 12 + 24);
}

TEST(Layout, what_lies_in_scratch_memory_or_on_the_astack_takes_no_stack) {
  const auto compiled = compile_body(
      "procedure A(in a: bytes<1000000>, inout b: bytes<1000000>, in c: byte[1200] uninterpreted) -> (d: "
      "bytes<9000>);");
  ASSERT_TRUE(compiled.interface) << compiled.diagnostics;
  EXPECT_LT(compiled.procedure("A").stack_need, 1024U);
}

TEST(Layout, every_procedure_that_does_not_fit_is_reported) {
  const auto compiled = compile_body(
      "procedure A(a: byte[40000], b: byte[40000]);\nprocedure B(a: byte[2000], b: string<3>);\n"
      "callback { procedure C(a: byte[40000], b: byte[40000]); }");
  EXPECT_EQ(compiled.errors, 3U) << compiled.diagnostics;
  for (const char* place : {"t:2:11: ", "t:3:11: ", "t:4:22: "})
    EXPECT_TRUE(compiled.says(place)) << place << "\n" << compiled.diagnostics;
}

TEST(Layout, no_astack_size_is_suggested_that_is_none) {
  const auto compiled = compile_body("procedure A(a: byte[65520], b: string<3>);");
  EXPECT_TRUE(compiled.says("use bytes<N>")) << compiled.diagnostics;
  EXPECT_FALSE(compiled.says("say 'astack_size")) << compiled.diagnostics;
}

TEST(Layout, what_is_accepted_has_a_region_that_holds_it) {
  const auto accepted = compile_body("option astacks = 1024; procedure A(in a: bytes<1044480>);");
  ASSERT_TRUE(accepted.interface) << accepted.diagnostics;
  std::vector<lrpc::AStackClass> classes;
  for (const AStackClass& one : accepted.interface->classes) {
    classes.push_back({static_cast<std::uint32_t>(one.image_size), static_cast<std::uint32_t>(one.tail_size),
                       static_cast<std::uint16_t>(one.count)});
  }
  EXPECT_TRUE(shim::RegionLayout::of(classes, 4096));
  // Each tail starts on a new page: 64 bytes more in one tail exceed the limit of the region.
  classes.back().tail_size += 64;
  EXPECT_FALSE(shim::RegionLayout::of(classes, 4096));
  EXPECT_FALSE(compile_body("option astacks = 1024; procedure A(in a: bytes<1044481>);").interface);
  // Slots are rounded up to 128 bytes, too.
  EXPECT_FALSE(test::compile_text("interface T version 1.0 { option astacks = 1000; option astack_size = 4664;"
                                  "procedure A(in a: bytes<1069056>); }")
                   .interface);
}

TEST(Layout, astack_size_changes_where_the_tail_begins_and_warns_where_it_cannot) {
  const auto compiled =
      compile_body("procedure A(in a: bytes<2000>) astack_size 4096; procedure B(a: int32) astack_size 4096;");
  EXPECT_EQ(compiled.procedure("A").tail_size, 0U);
  EXPECT_EQ(compiled.procedure("A").image_size, 2008U);
  EXPECT_TRUE(compiled.says("warning: astack_size has no effect: 'B'")) << compiled.diagnostics;
}

}  // namespace
}  // namespace lrpc::stubgen
