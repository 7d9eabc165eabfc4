// The replies of a group's members, as bytes from the network domain: whole replies are read, and nothing beyond them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lrpc/detail/client/binding/remote_path.h"

namespace lrpc::client {
namespace {

using Bytes = std::vector<std::byte>;

void append(Bytes& to, std::uint32_t host, std::uint16_t status, const std::string& image) {
  const std::size_t at = to.size();
  to.resize(at + GroupReplies::kHead + image.size());
  const auto room = std::span(to).subspan(at);
  EXPECT_EQ(GroupReplies::put({host, status, std::as_bytes(std::span(image))}, room), room.size());
}

GroupReplies replies_of(const Bytes& bytes) {
  auto memory = std::make_unique<std::byte[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), memory.get());
  return {0, 3, std::move(memory), bytes.size()};
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(GroupReplies, are_read_in_their_order) {
  Bytes bytes;
  append(bytes, 0x0a000001, 0, "results");
  append(bytes, 0x0a000002, 0x8001, "");
  GroupReplies replies = replies_of(bytes);
  EXPECT_EQ(replies.members(), 3U);
  const auto first = replies.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->host, 0x0a000001U);
  EXPECT_EQ(first->status, 0);
  EXPECT_EQ(text(first->image), "results");
  const auto second = replies.next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->host, 0x0a000002U);
  EXPECT_EQ(second->status, 0x8001);
  EXPECT_TRUE(second->image.empty());
  EXPECT_FALSE(replies.next());
  EXPECT_FALSE(replies.damaged());
}

TEST(GroupReplies, may_be_none) {
  GroupReplies replies = replies_of({});
  EXPECT_FALSE(replies.next());
  EXPECT_FALSE(replies.damaged());
}

TEST(GroupReplies, a_reply_cut_anywhere_is_damaged_and_spares_those_before) {
  Bytes whole;
  append(whole, 1, 0, "ab");
  const std::size_t first = whole.size();
  append(whole, 2, 0, "cd");
  for (std::size_t size = first + 1; size < whole.size(); ++size) {
    GroupReplies replies = replies_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_TRUE(replies.next()) << size;
    EXPECT_FALSE(replies.next()) << size;
    EXPECT_TRUE(replies.damaged()) << size;
    EXPECT_FALSE(replies.next()) << "and it stays so: " << size;
  }
}

TEST(GroupReplies, a_length_beyond_the_end_and_a_reserved_number_are_damage) {
  constexpr std::size_t kReserved = 6;
  constexpr std::size_t kLength = 8;
  for (const std::size_t at : {kReserved, kReserved + 1, kLength, kLength + 3}) {
    Bytes bytes;
    append(bytes, 1, 0, "ab");
    bytes[at] = std::byte{0xff};
    GroupReplies replies = replies_of(bytes);
    EXPECT_FALSE(replies.next()) << at;
    EXPECT_TRUE(replies.damaged()) << at;
  }
}

}  // namespace
}  // namespace lrpc::client
