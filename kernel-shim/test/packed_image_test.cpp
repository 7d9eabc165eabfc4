// Packed images and received descriptors: data from another host or domain is checked to the last byte.
#include "lrpc/detail/shim/call/packed_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "lrpc/detail/shim/call/variable.h"

namespace lrpc::shim {
namespace {

// F(in a: int32, in b: string<100>, inout c: bytes<300>) -> (d: int64) raises (E, Empty)
constexpr VariableParameter kB{.length_offset = 4,
                               .inline_offset = 32,
                               .inline_capacity = 16,
                               .tail_offset = 0,
                               .bound = 100,
                               .in = true,
                               .out = false};
constexpr VariableParameter kC{.length_offset = 8,
                               .inline_offset = 48,
                               .inline_capacity = 0,
                               .tail_offset = 128,
                               .bound = 300,
                               .in = true,
                               .out = true};
constexpr VariableParameter kVariables[] = {kB, kC};
constexpr ImageRange kCall[] = {{0, 12}};
constexpr ImageRange kReturn[] = {{8, 4}, {16, 8}};
constexpr ImageRange kRaised[] = {{12, 20}, {12, 0}};
constexpr ProcedureDescriptor kProcedures[] = {{.name = "F",
                                                .astack_class = 0,
                                                .simultaneous_calls = 1,
                                                .image_size = 48,
                                                .may_block = true,
                                                .handles = true,
                                                .stack_need = 0,
                                                .call_ranges = kCall,
                                                .return_ranges = kReturn,
                                                .variable_parameters = kVariables,
                                                .raised_ranges = kRaised},
                                               {.name = "Null",
                                                .astack_class = 0,
                                                .simultaneous_calls = 1,
                                                .image_size = 0,
                                                .may_block = false,
                                                .stack_need = 0,
                                                .call_ranges = {},
                                                .return_ranges = {},
                                                .variable_parameters = {},
                                                .raised_ranges = {}}};
constexpr AStackClass kClasses[] = {{.image_size = 48, .tail_size = 428, .count = 1}};

/// An A-stack in the test's own memory, between guard areas.
struct Memory {
  explicit Memory(std::byte with = std::byte{0xee}) { bytes.fill(with); }
  [[nodiscard]] AStack astack() { return {nullptr, bytes.data() + 64, bytes.data() + 256, nullptr}; }
  std::array<std::byte, 1024> bytes;
};

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

/// Writes a call of F to an A-stack.
void put_call(const AStack& at, std::string_view b, std::span<const std::byte> c) {
  put_scalar<CopyCode::A>(at.image, std::int32_t{-7});
  put_variable<CopyCode::A>(at.image, at.tail, kB, as_bytes(b));
  if (!c.empty()) std::memcpy(result_window(at.image, at.tail, kC), c.data(), c.size());
  put_result_length(at.image, kC, c.size());
}

TEST(PackedImage, carries_what_the_descriptor_names_and_nothing_else) {
  const auto shape = PackedShape::of_call(kProcedures[0]);
  EXPECT_EQ(shape.most(), 412U);
  EXPECT_EQ(most_returned(kProcedures[0]), 312U);
  for (const std::size_t b : {std::size_t{0}, std::size_t{16}, std::size_t{17}, std::size_t{100}}) {
    for (const std::size_t c : {std::size_t{0}, std::size_t{1}, std::size_t{300}}) {
      Memory from;
      const std::string text(b, 'b');
      const std::vector<std::byte> data(c, std::byte{0xcc});
      put_call(from.astack(), text, data);
      std::array<std::byte, 512> packed;
      const auto size = pack(shape, from.astack(), packed);
      ASSERT_EQ(size, 12 + b + c);
      EXPECT_EQ(std::ranges::count(std::span(packed).first(*size), std::byte{0xee}), 0)
          << "a byte that nobody has written travels";
      Memory to(std::byte{0});
      ASSERT_TRUE(unpack(shape, std::span(packed).first(*size), to.astack()));
      EXPECT_EQ((get_scalar<CopyCode::E, std::int32_t>(to.astack().image)), -7);
      const auto b2 = locate_variable(to.astack().image, to.astack().tail, kB);
      const auto c2 = locate_variable(to.astack().image, to.astack().tail, kC);
      ASSERT_TRUE(b2 && c2);
      EXPECT_TRUE(std::ranges::equal(*b2, as_bytes(text)));
      EXPECT_TRUE(std::ranges::equal(*c2, data));
      EXPECT_FALSE(pack(shape, from.astack(), std::span(packed).first(*size - 1))) << "no room";
    }
  }
}

TEST(PackedImage, is_refused_and_touches_nothing_unless_it_is_exactly_as_long_as_it_says) {
  const auto shape = PackedShape::of_call(kProcedures[0]);
  Memory from;
  put_call(from.astack(), "a text that is longer than its window", bytes_of("and bytes"));
  std::array<std::byte, 512> packed{};
  const std::size_t size = pack(shape, from.astack(), packed).value();
  for (std::size_t other = 0; other <= packed.size(); ++other) {
    Memory to;
    EXPECT_EQ(unpack(shape, std::span(packed).first(other), to.astack()), other == size) << other;
    if (other != size) {
      EXPECT_EQ(to.bytes, Memory().bytes) << other;
    }
  }
}

TEST(PackedImage, with_lying_lengths_is_refused) {
  const auto shape = PackedShape::of_call(kProcedures[0]);
  const auto unpacks = [&](std::uint32_t b, std::uint32_t c, std::size_t size) {
    std::vector<std::byte> packed(size);
    std::memcpy(packed.data() + 4, &b, sizeof b);
    std::memcpy(packed.data() + 8, &c, sizeof c);
    Memory to;
    const bool good = unpack(shape, packed, to.astack());
    EXPECT_TRUE(good || to.bytes == Memory().bytes);
    return good;
  };
  constexpr std::uint32_t kInTail = VariableParameter::kInTail;
  EXPECT_TRUE(unpacks(16, kInTail | 300, 12 + 316));
  EXPECT_TRUE(unpacks(kInTail | 100, 0, 12 + 100));
  EXPECT_FALSE(unpacks(17, 0, 12 + 17)) << "more than the window holds";
  EXPECT_FALSE(unpacks(kInTail | 101, 0, 12 + 101)) << "over its bound";
  EXPECT_FALSE(unpacks(0, 1, 13)) << "it has no window";
  EXPECT_FALSE(unpacks(0xffff'ffff, 0xffff'ffff, 500));
  EXPECT_FALSE(unpacks(0x7fff'ffff, 0, 500));
}

TEST(PackedImage, of_a_tail_is_refused_where_there_is_none) {
  const auto shape = PackedShape::of_call(kProcedures[0]);
  for (const std::uint32_t size : {0U, 1U, 100U}) {
    std::vector<std::byte> packed(12 + size);
    const std::uint32_t word = VariableParameter::kInTail | size;
    std::memcpy(packed.data() + 4, &word, sizeof word);
    Memory to;
    AStack at = to.astack();
    ASSERT_TRUE(unpack(shape, packed, at)) << size;
    std::array<std::byte, 512> out;
    EXPECT_EQ(pack(shape, at, out), packed.size());
    at.tail = nullptr;
    EXPECT_FALSE(pack(shape, at, out)) << size;
    Memory fresh;
    at.image = fresh.astack().image;
    EXPECT_FALSE(unpack(shape, packed, at)) << size;
    EXPECT_EQ(fresh.bytes, Memory().bytes) << size;
  }
}

TEST(LengthWord, says_where_a_value_stands_or_breaks_the_bounds) {
  constexpr std::uint32_t kInTail = VariableParameter::kInTail;
  const auto says = [](std::uint32_t word, const VariableParameter& p, std::uint32_t size, bool in_tail) {
    const auto said = judge_length(word, p);
    return said && said->size == size && said->in_tail == in_tail;
  };
  EXPECT_TRUE(says(0, kB, 0, false));
  EXPECT_TRUE(says(16, kB, 16, false));
  EXPECT_TRUE(says(kInTail, kB, 0, true));
  EXPECT_TRUE(says(kInTail | 100, kB, 100, true));
  EXPECT_TRUE(says(0, kC, 0, false));
  EXPECT_FALSE(judge_length(17, kB)) << "more than the window holds";
  EXPECT_FALSE(judge_length(kInTail | 101, kB)) << "over its bound";
  VariableParameter whole = kB;
  whole.bound = whole.inline_capacity;
  EXPECT_TRUE(says(16, whole, 16, false));
  EXPECT_FALSE(judge_length(kInTail, whole)) << "what always fits its window is never in the tail";
}

TEST(PackedImage, of_a_return_or_an_error_is_what_its_status_says) {
  Memory memory;
  const AStack at = memory.astack();
  put_scalar<CopyCode::F>(at.image + 16, std::int64_t{99});
  put_result_length(at.image, kC, 2);
  std::array<std::byte, 512> packed{};
  EXPECT_EQ(pack(*PackedShape::of_status(kProcedures[0], 0), at, packed), 14U);
  EXPECT_EQ(pack(*PackedShape::of_status(kProcedures[0], 1), at, packed), 20U);
  EXPECT_EQ(pack(*PackedShape::of_status(kProcedures[0], 2), at, packed), 0U);
  EXPECT_FALSE(PackedShape::of_status(kProcedures[0], 3));
  EXPECT_FALSE(PackedShape::of_status(kProcedures[0], 0x8001));
  // If a peer writes a length over the bound, nothing is taken.
  put_scalar<CopyCode::F>(at.image + 8, VariableParameter::kInTail | 301U);
  EXPECT_FALSE(pack(*PackedShape::of_status(kProcedures[0], 0), at, packed));
}

std::span<const std::byte> as_span(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(ReceivedDescriptors, are_those_that_were_sent) {
  const std::string bytes = encode_descriptors(kProcedures);
  auto received = ReceivedDescriptors::decode(as_span(bytes), kClasses);
  ASSERT_TRUE(received) << received.error().message();
  auto moved = std::move(*received);  // the data to which the descriptors point does not move
  ASSERT_EQ(moved.procedures().size(), 2U);
  EXPECT_EQ(encode_descriptors(moved.procedures()), bytes);
  EXPECT_TRUE(moved.procedures()[0].may_block);
  EXPECT_TRUE(moved.procedures()[0].handles);
  EXPECT_FALSE(moved.procedures()[1].may_block || moved.procedures()[1].handles);
  EXPECT_EQ(PackedShape::of_call(moved.procedures()[0]).most(), 412U);
}

TEST(ReceivedDescriptors, that_do_not_fit_the_astacks_are_refused) {
  const auto refused = [](auto&& change, const AStackClass& shared = kClasses[0]) {
    ProcedureDescriptor procedure = kProcedures[0];
    std::vector<ImageRange> call(std::begin(kCall), std::end(kCall));
    std::vector<ImageRange> returned(std::begin(kReturn), std::end(kReturn));
    std::vector<ImageRange> raised(std::begin(kRaised), std::end(kRaised));
    std::vector<VariableParameter> variables(std::begin(kVariables), std::end(kVariables));
    change(procedure, call, returned, raised, variables);
    procedure.call_ranges = call;
    procedure.return_ranges = returned;
    procedure.raised_ranges = raised;
    procedure.variable_parameters = variables;
    const std::string bytes = encode_descriptors({&procedure, 1});
    return ReceivedDescriptors::decode(as_span(bytes), {&shared, 1}).code() == Errc::bad_message;
  };
  EXPECT_FALSE(refused([](auto&...) {}));
  EXPECT_TRUE(refused([](auto& procedure, auto&...) { procedure.astack_class = 1; }));
  EXPECT_TRUE(refused([](auto& procedure, auto&...) { procedure.image_size = 49; }));
  EXPECT_TRUE(refused([](auto&, auto& call, auto&...) { call[0].size = 49; }));
  EXPECT_TRUE(refused([](auto&, auto& call, auto&...) { call[0] = {0xffff'ffff, 2}; }));
  EXPECT_TRUE(refused([](auto&, auto&, auto& returned, auto&...) { returned[1].offset = 10; })) << "overlap";
  EXPECT_TRUE(refused([](auto&, auto&, auto&, auto& raised, auto&) { raised[0].size = 40; }));
  EXPECT_TRUE(refused([](auto&, auto&, auto&, auto&, auto& variables) { variables[0].length_offset = 10; }));
  EXPECT_TRUE(refused([](auto&, auto&, auto&, auto&, auto& variables) { variables[0].out = true; })) << "no word";
  EXPECT_TRUE(refused([](auto&, auto&, auto&, auto&, auto& variables) { variables[0].inline_offset = 33; }));
  EXPECT_TRUE(refused([](auto&, auto&, auto&, auto&, auto& variables) { variables[1].tail_offset = 129; }));
  EXPECT_TRUE(refused([](auto&, auto&, auto&, auto&, auto& variables) { variables[1].bound = 0x8000'0000; }));
  EXPECT_TRUE(refused([](auto&...) {}, {.image_size = 48, .tail_size = 0, .count = 1})) << "no tail";
}

TEST(ReceivedDescriptors, out_of_garbage_are_refused_or_sound) {
  const std::string good = encode_descriptors(kProcedures);
  std::mt19937 random(11);  // NOLINT: a fixed seed on purpose
  int sound = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    auto received = ReceivedDescriptors::decode(as_span(bytes), kClasses);
    if (!received) continue;
    ++sound;
    // Whatever the descriptors say, packing and unpacking by them stays within the A-stack.
    Memory memory;
    for (const ProcedureDescriptor& procedure : received->procedures()) {
      for (const auto& shape : {PackedShape::of_call(procedure), PackedShape::of_return(procedure)}) {
        std::vector<std::byte> packed(random() % 600);
        for (std::byte& b : packed) b = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
        (void)unpack(shape, packed, memory.astack());
        (void)pack(shape, memory.astack(), packed);
      }
    }
    for (const std::size_t guard : {std::size_t{63}, std::size_t{64 + 48}, std::size_t{255}, std::size_t{256 + 428}})
      ASSERT_EQ(memory.bytes[guard], std::byte{0xee}) << guard;
  }
  EXPECT_GT(sound, 100);
}

}  // namespace
}  // namespace lrpc::shim
