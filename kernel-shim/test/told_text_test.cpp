// The text of an error on an A-stack: cut to the room there, and harmless whatever a peer has written.
#include "lrpc/detail/shim/binder/told_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace lrpc::shim {
namespace {

std::string through(std::string_view text, std::size_t room) {
  std::vector<std::byte> memory(room, std::byte{0xee});
  return put_told(memory, text) ? std::string(take_told(memory).view()) : "nothing";
}

/// The text that is taken if a peer has written these bytes.
std::string taken(std::uint16_t length, std::string_view bytes, std::size_t room = 256) {
  std::vector<std::byte> memory(room);
  std::memcpy(memory.data(), &length, sizeof length);
  std::memcpy(memory.data() + sizeof length, bytes.data(), bytes.size());
  return std::string(take_told(memory).view());
}

TEST(ToldText, arrives_as_it_was) {
  EXPECT_EQ(through("open notes.txt: No such file", 104), "open notes.txt: No such file");
  EXPECT_EQ(through("größer als 5 €, \xf0\x9f\x98\x80", 104), "größer als 5 €, \xf0\x9f\x98\x80");
  EXPECT_EQ(through("x", 3), "x");
}

TEST(ToldText, is_cut_to_its_bound_and_to_its_room) {
  EXPECT_EQ(through(std::string(1000, 'x'), 2000), std::string(kMostTold, 'x'));
  EXPECT_EQ(through(std::string(1000, 'x'), 104), std::string(102, 'x'));
}

TEST(ToldText, is_not_cut_inside_a_character) {
  EXPECT_EQ(through("12€", 2 + 4), "12");
  EXPECT_EQ(through("12€", 2 + 5), "12€");
  EXPECT_EQ(through("€", 2 + 2), "nothing");
}

TEST(ToldText, is_not_there_without_room_or_text) {
  for (const std::size_t room : {0U, 1U, 2U}) EXPECT_EQ(through("text", room), "nothing") << room;
  EXPECT_EQ(through("", 100), "nothing");
  EXPECT_TRUE(told_room(nullptr, nullptr).empty());
  EXPECT_EQ(take_told({}).size, 0U);
}

TEST(ToldText, of_a_peer_that_lies_about_its_length_ends_with_the_room) {
  EXPECT_EQ(taken(0xffff, "abc", 5), "abc");
  EXPECT_EQ(taken(0xffff, std::string(254, 'x')), std::string(kMostTold, 'x'));
  EXPECT_EQ(taken(0, "abc"), "");
}

TEST(ToldText, holds_no_byte_that_could_change_the_text_around_it) {
  EXPECT_EQ(taken(8, "a\nb\x1b[2Jc"), "a?b?[2Jc");
  EXPECT_EQ(taken(3, std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(taken(2, "\x7f\x80"), "??") << "delete, and a continuation by itself";
  EXPECT_EQ(taken(2, "\xc2\x9b"), "??") << "a control character of two bytes";
  EXPECT_EQ(taken(3, "\xe2\x80\xae"), "???") << "right-to-left override";
  EXPECT_EQ(taken(3, "\xe2\x80\xa8"), "???") << "line separator";
  EXPECT_EQ(taken(4, "\xf3\xa0\x80\xa1"), "????") << "an invisible tag";
  EXPECT_EQ(taken(2, "\xc2\xad"), "??") << "soft hyphen";
  EXPECT_EQ(taken(2, "\xc0\xaf"), "??") << "overlong";
  EXPECT_EQ(taken(3, "\xed\xa0\x80"), "???") << "half of a surrogate pair";
  EXPECT_EQ(taken(4, "\xf7\xbf\xbf\xbf"), "????") << "behind the last character";
  EXPECT_EQ(taken(3, "ab\xe2"), "ab?") << "cut inside a character";
  EXPECT_EQ(taken(4, "\xc3\xa4\xc3 "), "\xc3\xa4? ");
}

TEST(ToldText, is_harmless_for_every_pair_of_bytes) {
  for (unsigned pair = 0; pair < 0x10000; ++pair) {
    const char bytes[] = {static_cast<char>(pair & 0xff), static_cast<char>(pair >> 8)};
    const std::string text = taken(2, {bytes, 2});
    ASSERT_EQ(text.size(), 2U);
    // The result is harmless, and taking it again changes nothing.
    ASSERT_EQ(taken(2, text), text) << pair;
    for (const char c : text) ASSERT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f) << pair;
  }
}

}  // namespace
}  // namespace lrpc::shim
