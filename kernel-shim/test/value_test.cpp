// Values of fixed capacity: a value that is too long is refused when it is made.
#include "lrpc/detail/shim/call/value.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lrpc {
namespace {

TEST(StringTest, keeps_all_of_a_text_that_fits) {
  EXPECT_EQ(String<4>("four"), "four");
  EXPECT_EQ(String<4>(std::string("abc")), "abc");
  EXPECT_EQ(String<4>(std::string_view("a\0c", 3)).size(), 3U);
  EXPECT_TRUE(String<0>("").empty());
}

TEST(StringTest, refuses_a_longer_text_and_says_both_lengths) {
  EXPECT_THROW(String<4>("fiver"), std::length_error);
  EXPECT_THROW(String<4>(std::string(5, 'x')), std::length_error);
  try {
    const String<4> text = std::string_view("fiver");
    FAIL() << text.view();
  } catch (const std::length_error& error) {
    EXPECT_STREQ(error.what(), "a text of 5 bytes for an lrpc::String<4>");
  }
}

TEST(StringTest, stays_as_it_was_when_a_longer_text_is_assigned) {
  String<4> text = "was";
  EXPECT_THROW(text = std::string("longer"), std::length_error);
  EXPECT_EQ(text, "was");
  EXPECT_FALSE(text.assign("longer"));
  EXPECT_EQ(text, "was");
}

TEST(StringTest, is_cut_only_on_request) {
  EXPECT_EQ(String<4>::cut("longer"), "long");
  EXPECT_EQ(String<4>::cut("abc"), "abc");
}

TEST(StringTest, compares_with_texts_of_every_type_on_either_side) {
  const String<8> text = "four";
  const String<4> of_another_bound = "four";
  const std::string string = "four";
  const std::string_view view = string;
  EXPECT_TRUE(text == text && text == of_another_bound && of_another_bound == text);
  EXPECT_TRUE(text == string && string == text);
  EXPECT_TRUE(text == view && view == text);
  EXPECT_TRUE(text == "four" && "four" == text);
  EXPECT_TRUE(text != String<4>("five") && text != std::string("five") && text != "five" && "five" != text);
}

TEST(StringTest, is_ordered_by_its_bytes_as_unsigned_numbers) {
  const String<8> text = "four";
  EXPECT_TRUE(text < String<4>("g") && text > String<4>("") && text <= text && text >= String<4>("four"));
  EXPECT_TRUE(text < String<8>("fourth") && text > "Z" && "Z" < text);
  EXPECT_TRUE(text < std::string("g") && std::string_view("a") < text && text < "\xc3\xa9");
  EXPECT_TRUE(text < std::string_view("four\0", 5));
  std::map<String<8>, int, std::less<>> numbers{{"two", 2}, {"one", 1}};
  EXPECT_EQ(numbers.begin()->second, 1);
  EXPECT_EQ(numbers.find(std::string_view("two"))->second, 2);
}

TEST(BufferTest, stays_as_it_was_when_what_is_assigned_does_not_fit) {
  std::array<std::byte, 4> memory{};
  Buffer buffer(memory, 2);
  const std::array<std::byte, 5> longer{};
  EXPECT_FALSE(buffer.assign(longer));
  EXPECT_FALSE(buffer.resize(5));
  EXPECT_EQ(buffer.size(), 2U);
}

}  // namespace
}  // namespace lrpc
