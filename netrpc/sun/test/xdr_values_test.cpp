// Conversion between XDR and packed images for values of every type: the words on the wire, and what is refused.
#include "xdr_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>

#include "lrpc/stubgen/layout/compile.h"
#include "lrpc/stubgen/layout/xdr_subset.h"

namespace lrpc::sun {
namespace {

using netrpc::XdrWriter;
using stubgen::Procedure;

stubgen::Interface compiled(std::string text) {
  stubgen::Diagnostics diagnostics;
  const stubgen::Source source{"t", std::move(text)};
  auto interface = stubgen::compile(source, diagnostics);
  EXPECT_TRUE(interface) << diagnostics.text("t");
  return *std::move(interface);
}

/// An interface whose only procedure has the parameter `inout x: <type>`. Arguments and results then have the same
/// image and the same XDR, so every check covers both.
class Echo {
 public:
  explicit Echo(const std::string& type, const std::string& declarations = {})
      : interface_(compiled("interface T version 1.0 { " + declarations + " procedure P(inout x: " + type + "); }")) {}
  bool packs(const std::vector<std::byte>& xdr) { return pack_arguments(procedure(), xdr, scratch_, packed_); }
  /// Packing and unpacking `xdr` gives the same bytes.
  void returns(const XdrWriter& xdr) {
    ASSERT_TRUE(packs(xdr.bytes()));
    XdrWriter back;
    ASSERT_TRUE(unpack_results(procedure(), 0, packed_, scratch_, back));
    EXPECT_EQ(back.bytes(), xdr.bytes());
    back.clear();
    ASSERT_TRUE(unpack_arguments(procedure(), packed_, scratch_, back));
    EXPECT_EQ(back.bytes(), xdr.bytes());
    EXPECT_LE(xdr.bytes().size(), ArgumentSizes().most(procedure()));
    std::vector<std::byte> results;
    ASSERT_EQ(pack_results(procedure(), xdr.bytes(), scratch_, results), 0);
    EXPECT_EQ(results, packed_);
  }
  bool refuses(const XdrWriter& xdr) {
    return !packs(xdr.bytes()) && !pack_results(procedure(), xdr.bytes(), scratch_, packed_);
  }
  /// Whether the image `packed` is refused, both as a server's results and as arguments.
  bool refuses_results(std::vector<std::byte> packed) {
    XdrWriter back;
    return !unpack_results(procedure(), 0, packed, scratch_, back) &&
           !unpack_arguments(procedure(), packed, scratch_, back);
  }
  [[nodiscard]] const std::vector<std::byte>& packed() const { return packed_; }

 private:
  const Procedure& procedure() const { return interface_.procedures.front(); }
  stubgen::Interface interface_;
  Scratch scratch_;
  std::vector<std::byte> packed_;
};

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> made;
  for (const int value : values) made.push_back(static_cast<std::byte>(value));
  return made;
}

TEST(XdrValues, integers_up_to_32_bits_are_words) {
  Echo small("int8");
  small.returns(XdrWriter().integer(-128));
  EXPECT_EQ(small.packed(), bytes({0x80}));
  small.returns(XdrWriter().integer(127));
  EXPECT_TRUE(small.refuses(XdrWriter().integer(128)));
  EXPECT_TRUE(small.refuses(XdrWriter().integer(-129)));
  Echo word("uint16");
  word.returns(XdrWriter().word(65535));
  EXPECT_EQ(word.packed(), bytes({0xff, 0xff}));
  EXPECT_TRUE(word.refuses(XdrWriter().word(65536)));
  Echo("int32").returns(XdrWriter().integer(INT32_MIN));
  Echo("uint32").returns(XdrWriter().word(UINT32_MAX));
}

TEST(XdrValues, integers_of_64_bits_are_hypers) {
  Echo number("int64");
  number.returns(XdrWriter().hyper(static_cast<std::uint64_t>(-2)));
  EXPECT_EQ(number.packed(), bytes({0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
  Echo("uint64").returns(XdrWriter().hyper(UINT64_MAX));
  EXPECT_TRUE(number.refuses(XdrWriter().word(1)));
}

TEST(XdrValues, reals_keep_their_bits) {
  Echo("float32").returns(XdrWriter().real(-1.5F));
  Echo("float64").returns(XdrWriter().hyper(0x7ff4'0000'0000'0001));  // a signalling NaN
}

TEST(XdrValues, bools_are_0_or_1_and_bytes_fit) {
  Echo flag("bool");
  flag.returns(XdrWriter().boolean(true));
  EXPECT_TRUE(flag.refuses(XdrWriter().word(2)));
  EXPECT_TRUE(flag.refuses_results(bytes({2})));
  Echo byte("byte");
  byte.returns(XdrWriter().word(255));
  EXPECT_TRUE(byte.refuses(XdrWriter().word(256)));
}

TEST(XdrValues, enums_have_their_declared_values_alone) {
  Echo small("E", "enum E : int16 { A = -300, B = 7 }");
  small.returns(XdrWriter().integer(-300));
  EXPECT_TRUE(small.refuses(XdrWriter().integer(8)));
  EXPECT_TRUE(small.refuses(XdrWriter().integer(-300 + 65536)));
  EXPECT_TRUE(small.refuses_results(bytes({8, 0})));
  Echo word("E", "enum E : uint32 { A = 0, B = 0x80000000 }");
  word.returns(XdrWriter().word(0x8000'0000));
  Echo wide("E", "enum E : uint64 { A = 1, B = 0xffffffffffffffff }");
  wide.returns(XdrWriter().hyper(UINT64_MAX));
  Echo narrow("E", "enum E : uint64 { A = 1 }");
  narrow.returns(XdrWriter().word(1));
  EXPECT_TRUE(narrow.refuses(XdrWriter().integer(-1)));
}

TEST(XdrValues, ranges_hold_also_where_one_narrows_another) {
  Echo share("Q", "type M = int32 range 1 .. 12; type Q = M range 1 .. 4;");
  share.returns(XdrWriter().integer(4));
  EXPECT_TRUE(share.refuses(XdrWriter().integer(5)));
  EXPECT_TRUE(share.refuses(XdrWriter().integer(0)));
  EXPECT_TRUE(share.refuses_results(bytes({5, 0, 0, 0})));
  Echo below("B", "type B = int64 range -9223372036854775808 .. -1;");
  below.returns(XdrWriter().hyper(std::uint64_t{1} << 63));
  EXPECT_TRUE(below.refuses(XdrWriter().hyper(0)));
}

TEST(XdrValues, arrays_of_bytes_are_opaque_and_others_are_their_elements) {
  Echo opaque("byte[5]");
  opaque.returns(XdrWriter().fixed(bytes({1, 2, 3, 4, 5})));
  EXPECT_EQ(opaque.packed(), bytes({1, 2, 3, 4, 5}));
  Echo renamed("B[3]", "type B = byte;");
  renamed.returns(XdrWriter().fixed(bytes({1, 2, 3})));
  Echo grid("uint8[2][3]");
  grid.returns(XdrWriter().word(1).word(2).word(3).word(4).word(5).word(6));
  EXPECT_EQ(grid.packed(), bytes({1, 2, 3, 4, 5, 6}));
  Echo ranged("M[2]", "type M = uint8 range 1 .. 12;");
  EXPECT_TRUE(ranged.refuses(XdrWriter().word(1).word(13)));
}

TEST(XdrValues, records_are_their_fields_and_their_padding_is_zero) {
  Echo record("R", "record R { a: uint8; b: uint32; s: string<6>; }");
  record.returns(XdrWriter().word(1).word(2).text("abc"));
  EXPECT_EQ(record.packed(), bytes({1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, 0}));
  EXPECT_TRUE(record.refuses(XdrWriter().word(1).word(2).text("abcdefg")));
  EXPECT_TRUE(record.refuses_results(bytes({1, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, 0})));
}

TEST(XdrValues, strings_and_bytes_have_their_lengths_in_front) {
  Echo text("string<5>");
  text.returns(XdrWriter().text("abcd"));
  EXPECT_EQ(text.packed(), bytes({4, 0, 0, 0, 'a', 'b', 'c', 'd'}));
  text.returns(XdrWriter().text(""));
  EXPECT_TRUE(text.refuses(XdrWriter().text("abcdef")));
  EXPECT_TRUE(text.refuses_results(bytes({6, 0, 0, 0, 'a', 'b', 'c', 'd', 'e', 'f'})));
  EXPECT_TRUE(text.refuses_results(bytes({2, 0, 0, 0, 'a'})));
  EXPECT_TRUE(text.refuses_results(bytes({1, 0, 0, 0, 'a', 'b'})));
  EXPECT_TRUE(text.refuses_results(bytes({1, 0, 0})));
  Echo large("bytes<4000>");  // may exceed its A-stack of 1,500 bytes: even a short value goes into the tail
  large.returns(XdrWriter().opaque(bytes({1, 2, 3})));
  EXPECT_EQ(large.packed(), bytes({3, 0, 0, 0x80, 1, 2, 3}));
}

TEST(XdrValues, what_pads_bytes_may_be_anything_and_does_not_go_on) {
  Echo opaque("byte[3]");
  EXPECT_TRUE(opaque.packs(bytes({1, 2, 3, 9})));
  EXPECT_EQ(opaque.packed(), bytes({1, 2, 3}));
  Echo text("string<5>");
  EXPECT_TRUE(text.packs(bytes({0, 0, 0, 1, 'a', 7, 8, 9})));
  EXPECT_EQ(text.packed(), bytes({1, 0, 0, 0, 'a'}));
}

TEST(XdrValues, arguments_are_all_of_the_message) {
  Echo number("int32");
  EXPECT_TRUE(number.refuses(XdrWriter()));
  EXPECT_TRUE(number.refuses(XdrWriter().word(1).word(2)));
  EXPECT_FALSE(number.packs(bytes({0, 0, 1})));
}

TEST(XdrValues, errors_are_arms_of_a_union) {
  const auto interface = compiled(
      "interface T version 1.0 { error Busy; error No { why: string<8>; code: uint8; }"
      "procedure P(a: int32) -> (b: uint16, c: string<4>) raises (Busy, No); }");
  const Procedure& procedure = interface.procedures.front();
  Scratch scratch;
  const auto told = [&](std::uint16_t status, const std::vector<std::byte>& packed) {
    XdrWriter xdr;
    return unpack_results(procedure, status, packed, scratch, xdr) ? xdr.bytes() : std::vector<std::byte>();
  };
  EXPECT_EQ(told(0, bytes({7, 0, 2, 0, 0, 0, 'h', 'i'})), XdrWriter().word(0).word(7).text("hi").bytes());
  EXPECT_EQ(told(1, {}), XdrWriter().word(1).bytes());
  EXPECT_EQ(told(2, bytes({2, 0, 0, 0, 'n', 'o', 0, 0, 0, 0, 0, 0, 9, 0, 0, 0})),
            XdrWriter().word(2).text("no").word(9).bytes());
  EXPECT_TRUE(told(3, {}).empty());
  EXPECT_TRUE(told(1, bytes({0})).empty());
  EXPECT_TRUE(told(2, bytes({2, 0, 0, 0})).empty());
}

TEST(XdrValues, a_server_s_union_is_the_results_or_an_error) {
  const auto interface = compiled(
      "interface T version 1.0 { error Busy; error No { why: string<8>; code: uint8; }"
      "procedure P(a: int32) -> (b: uint16, c: string<4>) raises (Busy, No); }");
  const Procedure& procedure = interface.procedures.front();
  Scratch scratch;
  std::vector<std::byte> packed;
  const auto status = [&](const XdrWriter& xdr) { return pack_results(procedure, xdr.bytes(), scratch, packed); };
  EXPECT_EQ(status(XdrWriter().word(0).word(7).text("hi")), 0);
  EXPECT_EQ(packed, bytes({7, 0, 2, 0, 0, 0, 'h', 'i'}));
  EXPECT_EQ(status(XdrWriter().word(1)), 1);
  EXPECT_EQ(packed, bytes({}));
  EXPECT_EQ(status(XdrWriter().word(2).text("no").word(9)), 2);
  EXPECT_EQ(packed, bytes({2, 0, 0, 0, 'n', 'o', 0, 0, 0, 0, 0, 0, 9, 0, 0, 0}));
  EXPECT_EQ(status(XdrWriter()), std::nullopt);
  EXPECT_EQ(status(XdrWriter().word(0).word(7)), std::nullopt);
  EXPECT_EQ(status(XdrWriter().word(0).word(65536).text("hi")), std::nullopt);
  EXPECT_EQ(status(XdrWriter().word(1).word(0)), std::nullopt);
  EXPECT_EQ(status(XdrWriter().word(2).text("too long.").word(9)), std::nullopt);
  EXPECT_EQ(status(XdrWriter().word(2).text("no").word(256)), std::nullopt);
  EXPECT_EQ(status(XdrWriter().word(3)), std::nullopt);
  EXPECT_EQ(status(XdrWriter().word(0x1'0001)), std::nullopt);
}

TEST(XdrValues, the_most_that_arguments_take_is_counted_by_their_types) {
  const auto interface = compiled(
      "interface T version 1.0 { enum E : uint8 { A = 0 } enum W : uint64 { B = 0xffff_ffff_ffff_ffff }"
      "record R { a: uint8; s: string<5>; }"
      "procedure P(a: bool, b: byte, c: E, d: W, e: float64, f: R[2], in g: bytes<7>, in h: byte[5]) -> (i: int32); }");
  EXPECT_EQ(ArgumentSizes().most(interface.procedures.front()),
            4U + 4U + 4U + 8U + 8U + 2U * (4U + 4U + 8U) + (4U + 8U) + 8U);
}

/// Each record holds two of the previous one. The largest has 2^13 integers, and many procedures take it.
TEST(XdrValues, the_most_that_arguments_take_is_found_by_looking_at_each_part_of_the_declaration_once) {
  constexpr std::size_t kDepth = 13;
  constexpr std::size_t kProcedures = 500;
  std::string text = "interface T version 1.0 { record R0 { a: uint8; b: uint8; }";
  for (std::size_t i = 1; i < kDepth; ++i) {
    const std::string half = "R" + std::to_string(i - 1);
    text += "record R" + std::to_string(i) + " { a: " + half + "; b: " + half + "; }";
  }
  for (std::size_t i = 0; i < kProcedures; ++i) text += "procedure P" + std::to_string(i) + "(a: R12);";
  const auto interface = compiled(text + "}");
  ArgumentSizes sizes;
  for (const Procedure& procedure : interface.procedures) EXPECT_EQ(sizes.most(procedure), 4U << kDepth);
  EXPECT_LE(sizes.looked(), 2 * kDepth + kProcedures);
}

TEST(XdrValues, whatever_comes_ends_within_its_declaration) {
  std::ifstream file(LRPC_TYPES);
  const auto interface = compiled({std::istreambuf_iterator<char>(file), {}});
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  Scratch scratch;
  std::vector<std::byte> packed;
  std::size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Procedure& procedure = interface.procedures[random() % interface.procedures.size()];
    if (!stubgen::why_not_in_xdr(procedure).empty()) continue;
    std::vector<std::byte> raw(random() % 200);
    for (std::byte& one : raw) one = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    if (pack_arguments(procedure, raw, scratch, packed)) ++accepted;
    XdrWriter xdr;
    (void)unpack_results(procedure, static_cast<std::uint16_t>(random() % 4), raw, scratch, xdr);
    (void)unpack_arguments(procedure, raw, scratch, xdr);
    if (pack_results(procedure, raw, scratch, packed)) ++accepted;
  }
  EXPECT_GT(accepted, 0U);
}

}  // namespace
}  // namespace lrpc::sun
