// XDR, with the examples of RFC 4506, and malformed bytes.
#include "lrpc/netrpc/xdr.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace lrpc::netrpc {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte one : bytes) {
    text += "0123456789abcdef"[std::to_integer<unsigned>(one) >> 4];
    text += "0123456789abcdef"[std::to_integer<unsigned>(one) & 15];
  }
  return text;
}
constexpr std::array kSixBytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}, std::byte{6}};

TEST(XdrTest, each_value_has_the_bytes_of_the_rfc) {
  EXPECT_EQ(hex(XdrWriter().word(0xdeadbeef).bytes()), "deadbeef");
  EXPECT_EQ(hex(XdrWriter().integer(-2).bytes()), "fffffffe");
  EXPECT_EQ(hex(XdrWriter().hyper(0x0102030405060708).bytes()), "0102030405060708");
  EXPECT_EQ(hex(XdrWriter().boolean(true).boolean(false).bytes()), "0000000100000000");
  EXPECT_EQ(hex(XdrWriter().real(-1.5F).bytes()), "bfc00000");
  EXPECT_EQ(hex(XdrWriter().real(-1.5).bytes()), "bff8000000000000");
  EXPECT_EQ(hex(XdrWriter().fixed(kSixBytes).bytes()), "0102030405060000");
  EXPECT_EQ(hex(XdrWriter().opaque(kSixBytes).bytes()), "000000060102030405060000");
  EXPECT_EQ(hex(XdrWriter().opaque({}).bytes()), "00000000");
  // The example of §7: a file's name, kind, owner and data.
  XdrWriter file;
  file.text("sillyprog").word(2).text("lisp").text("john").text("(quit)");
  EXPECT_EQ(hex(file.bytes()),
            "0000000973696c6c7970726f6700000000000002000000046c697370000000046a6f686e000000062871756974290000");
}

TEST(XdrTest, what_was_written_is_read) {
  XdrWriter writer;
  writer.integer(-7).hyper(~0ULL).boolean(true).real(2.25F).real(-1e300).fixed(kSixBytes).text("drawer").word(9);
  XdrReader reader(writer.bytes());
  EXPECT_EQ(reader.integer(), -7);
  EXPECT_EQ(reader.hyper(), ~0ULL);
  EXPECT_TRUE(reader.boolean());
  EXPECT_EQ(reader.real(), 2.25F);
  EXPECT_EQ(reader.long_real(), -1e300);
  EXPECT_EQ(hex(reader.fixed(6)), "010203040506");
  EXPECT_EQ(reader.text(6), "drawer");
  EXPECT_FALSE(reader.at_end());
  EXPECT_EQ(reader.rest().size(), 4U);
  EXPECT_EQ(reader.word(), 9U);
  EXPECT_TRUE(reader.at_end());
}

TEST(XdrTest, bytes_that_are_cut_short_are_not_right_and_read_as_nothing) {
  const std::vector<std::byte> whole = XdrWriter().word(1).hyper(2).text("abcde").fixed(kSixBytes).bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    XdrReader reader({whole.data(), size});
    reader.word();
    reader.hyper();
    const std::string_view text = reader.text(5);
    const std::span<const std::byte> last = reader.fixed(6);
    EXPECT_FALSE(reader.right()) << size;
    EXPECT_TRUE(last.empty());
    EXPECT_TRUE(text.empty() || size >= 24) << size;
    EXPECT_EQ(reader.word(), 0U);
    EXPECT_TRUE(reader.rest().empty());
  }
}

TEST(XdrTest, what_is_too_long_or_no_bool_is_not_right) {
  const std::vector<std::byte> five = XdrWriter().text("abcde").bytes();
  EXPECT_EQ(XdrReader(five).text(5), "abcde");
  XdrReader too_long(five);
  EXPECT_TRUE(too_long.text(4).empty());
  EXPECT_FALSE(too_long.right());
  const std::vector<std::byte> most = XdrWriter().word(0xffffffff).bytes();
  XdrReader longest(most);
  EXPECT_TRUE(longest.opaque(~std::size_t{0}).empty());
  EXPECT_FALSE(longest.right());
  const std::vector<std::byte> two = XdrWriter().word(2).word(5).bytes();
  XdrReader no_bool(two);
  EXPECT_FALSE(no_bool.boolean());
  EXPECT_FALSE(no_bool.right());
  EXPECT_EQ(no_bool.word(), 0U);
}

TEST(XdrTest, a_writer_that_is_cleared_uses_its_memory_again) {
  XdrWriter writer;
  writer.text("a long text");
  const std::byte* const memory = writer.bytes().data();
  writer.clear();
  writer.text("another one");
  EXPECT_EQ(writer.bytes().data(), memory);
}

}  // namespace
}  // namespace lrpc::netrpc
