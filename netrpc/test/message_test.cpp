#include <gtest/gtest.h>

#include <algorithm>

#include <random>
#include <string>
#include <vector>

#include "lrpc/netrpc/message.h"

namespace lrpc::netrpc {
namespace {

using Bytes = std::vector<std::byte>;

Bytes all(const Message& message) {
  Bytes bytes(message.size());
  EXPECT_EQ(message.copy_to(bytes), message.size());
  return bytes;
}
Bytes characters(std::string_view from) {
  const auto bytes = std::as_bytes(std::span(from));
  return {bytes.begin(), bytes.end()};
}
Message message_of(BufferPool& pool, std::string_view from) {
  return Message::copy_of(pool, std::as_bytes(std::span(from)));
}
void push(Message& message, std::string_view header) {
  std::byte* const to = message.push(header.size());
  ASSERT_NE(to, nullptr);
  std::copy_n(std::as_bytes(std::span(header)).begin(), header.size(), to);
}

TEST(Message, headers_are_pushed_in_place_and_popped_in_place) {
  BufferPool pool;
  Message message = message_of(pool, "data");
  const std::byte* const data = message.bytes().data();
  push(message, "inner ");
  push(message, "outer ");
  EXPECT_TRUE(message.contiguous());
  EXPECT_EQ(message.bytes().data() + 12, data);
  EXPECT_EQ(all(message), characters("outer inner data"));
  Message::Header<6> header;
  message.pop(header);
  ASSERT_TRUE(header);
  EXPECT_EQ(Bytes(header.bytes, header.bytes + 6), characters("outer "));
  EXPECT_NE(header.bytes, header.storage);
  EXPECT_EQ(pool.allocations(), 1U);
}

TEST(Message, a_message_that_is_too_short_is_not_popped) {
  BufferPool pool;
  Message message = message_of(pool, "abc");
  std::byte scratch[8];
  EXPECT_EQ(message.pop(4, scratch), nullptr);
  EXPECT_EQ(all(message), characters("abc"));
  EXPECT_EQ(Message().pop(1, scratch), nullptr);
  EXPECT_NE(message.pop(3, scratch), nullptr);
  EXPECT_TRUE(message.empty());
}

TEST(Message, headers_of_one_share_do_not_clobber_those_of_the_other) {
  BufferPool pool;
  Message sent = message_of(pool, "data");
  push(sent, "common ");
  Message saved = sent.share();
  push(sent, "first ");
  push(saved, "other! ");
  push(sent, "more ");
  EXPECT_EQ(all(sent), characters("more first common data"));
  EXPECT_EQ(all(saved), characters("other! common data"));
  // Bytes that are popped from one message still belong to the other.
  std::byte scratch[64];
  ASSERT_NE(sent.pop(11, scratch), nullptr);
  Message third = saved.share();
  push(sent, "XXXXXXXXXXXXXXX");
  ASSERT_NE(saved.pop(7, scratch), nullptr);
  push(saved, "YYYYYYY");
  EXPECT_EQ(all(third), characters("other! common data"));
  EXPECT_EQ(all(saved), characters("YYYYYYYcommon data"));
  EXPECT_EQ(all(sent), characters("XXXXXXXXXXXXXXXcommon data"));
}

TEST(Message, fragments_share_bytes_and_come_together_again) {
  BufferPool pool;
  const std::string data(10000, 'd');
  Message message = message_of(pool, data);
  Message whole(pool);
  const std::uint64_t before = pool.in_use();
  while (!message.empty()) {
    Message fragment = message.split(1400);
    push(fragment, "header");
    std::byte scratch[6];
    ASSERT_NE(fragment.pop(6, scratch), nullptr);
    ASSERT_TRUE(whole.append(std::move(fragment)));
  }
  EXPECT_EQ(all(whole), characters(data));
  EXPECT_FALSE(whole.contiguous());
  iovec entries[32];
  EXPECT_EQ(whole.describe(entries), 8U);
  EXPECT_EQ(whole.describe(std::span(entries).first(7)), 0U);
  ASSERT_TRUE(whole.flatten());
  EXPECT_EQ(all(whole), characters(data));
  message.clear();
  EXPECT_LE(pool.in_use(), before);
  whole.clear();
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(Message, a_header_that_lies_in_two_slices_is_copied) {
  BufferPool pool;
  Message message = message_of(pool, "abc");
  ASSERT_TRUE(message.append(message_of(pool, "def")));
  Message::Header<5> header;
  message.pop(header);
  ASSERT_TRUE(header);
  EXPECT_EQ(header.bytes, header.storage);
  EXPECT_EQ(Bytes(header.bytes, header.bytes + 5), characters("abcde"));
  EXPECT_EQ(all(message), characters("f"));
}

TEST(Message, what_is_left_of_large_buffers_is_fitted_into_a_small_one) {
  BufferPool pool;
  Message cut = message_of(pool, "data" + std::string(3000, 'p'));
  cut.truncate(4);
  EXPECT_EQ(cut.footprint(), BufferPool::kSizes[2]);
  cut.fit();
  EXPECT_EQ(cut.footprint(), BufferPool::kSizes[0]);
  EXPECT_EQ(all(cut), characters("data"));
  Message pieces = message_of(pool, "abc");
  for (const std::string_view more : {"def", "ghi"}) ASSERT_TRUE(pieces.append(message_of(pool, more)));
  pieces.fit();
  EXPECT_EQ(pieces.footprint(), BufferPool::kSizes[0]);
  EXPECT_EQ(all(pieces), characters("abcdefghi"));
}

TEST(Message, a_message_whose_buffer_its_headers_have_needed_stays_where_it_is) {
  BufferPool pool;
  Message message = message_of(pool, std::string(BufferPool::kSizes[0] - Message::kHeadroom + 1, 'h'));
  std::byte scratch[10];
  ASSERT_NE(message.pop(sizeof scratch, scratch), nullptr);
  const std::byte* const before = message.bytes().data();
  message.fit();
  EXPECT_EQ(message.bytes().data(), before);
  EXPECT_EQ(pool.allocations(), 1U);
  Message nothing;
  nothing.fit();
  EXPECT_FALSE(nothing.allocated());
}

TEST(Message, a_message_that_finds_no_smaller_buffer_stays_where_it_is) {
  BufferPool pool(BufferPool::kSizes[2]);
  Message message = message_of(pool, std::string(3000, 'x'));
  message.truncate(4);
  message.fit();
  EXPECT_EQ(message.footprint(), BufferPool::kSizes[2]);
  EXPECT_EQ(all(message), characters("xxxx"));
}

TEST(Message, padding_is_cut_off_across_slices) {
  BufferPool pool;
  Message message = message_of(pool, "abc");
  ASSERT_TRUE(message.append(message_of(pool, "def")));
  ASSERT_TRUE(message.append(message_of(pool, "padding")));
  message.truncate(100);
  EXPECT_EQ(message.size(), 13U);
  message.truncate(4);
  EXPECT_EQ(all(message), characters("abcd"));
  ASSERT_TRUE(message.append(message_of(pool, "!")));
  EXPECT_EQ(all(message), characters("abcd!"));
  message.truncate(0);
  EXPECT_TRUE(message.empty());
}

TEST(Message, what_a_device_received_is_taken_over) {
  BufferPool pool;
  Buffer* const buffer = pool.take(2000);
  ASSERT_NE(buffer, nullptr);
  std::fill_n(buffer->bytes(), 100, std::byte{'z'});
  {
    Message message = Message::adopt(*buffer, 14, 50);
    EXPECT_EQ(message.size(), 50U);
    push(message, "reply");
    EXPECT_TRUE(message.contiguous());
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(Message, the_pools_limit_is_kept_and_every_operation_says_so) {
  BufferPool pool(3 * 512);
  Message first = message_of(pool, "first");
  Message second = message_of(pool, "second");
  Message third = message_of(pool, "third");
  EXPECT_FALSE(message_of(pool, "fourth").allocated());
  Message share = first.share();
  push(first, "mine ");
  EXPECT_EQ(share.push(4), nullptr);  // needs a buffer of its own
  EXPECT_EQ(all(share), characters("first"));
  ASSERT_TRUE(second.append(std::move(third)));
  EXPECT_FALSE(second.flatten());
  EXPECT_EQ(all(second), characters("secondthird"));
  first.clear();
  push(share, "now ");
  EXPECT_EQ(all(share), characters("now first"));
  EXPECT_FALSE(Message::make(pool, Message::kMaxContiguous + 1).allocated());
}

TEST(Message, a_flood_of_one_size_does_not_keep_the_other_sizes_out_for_good) {
  BufferPool pool(BufferPool::kSizes[2] + 512);
  {
    std::vector<Message> flood;
    for (;;) {
      flood.push_back(message_of(pool, "small"));
      if (!flood.back().allocated()) break;
    }
    EXPECT_GT(flood.size(), 20U);
    EXPECT_FALSE(Message::make(pool, 16384).allocated());
  }
  EXPECT_TRUE(Message::make(pool, 16384).allocated());
  EXPECT_TRUE(message_of(pool, "small").allocated());
}

TEST(Message, nothing_is_allocated_once_warm) {
  BufferPool pool;
  const auto round = [&] {
    Message message = Message::make(pool, 4000);
    push(message, "header");
    Message saved = message.share();
    Message whole(pool);
    while (!message.empty()) {
      Message fragment = message.split(1000);
      push(fragment, "fragment");
      std::byte scratch[8];
      (void)fragment.pop(8, scratch);
      EXPECT_TRUE(whole.append(std::move(fragment)));
    }
    EXPECT_TRUE(whole.flatten());
  };
  round();
  const std::uint64_t allocations = pool.allocations();
  for (int i = 0; i < 1000; ++i) round();
  EXPECT_EQ(pool.allocations(), allocations);
  EXPECT_EQ(pool.in_use(), 0U);
}

/// Random operations on several messages and on a model of their contents.
class MessageModel {
 public:
  explicit MessageModel(std::uint32_t seed) : random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    for (const Entry& entry : entries_) check(entry);
    entries_.clear();
    EXPECT_EQ(pool_.in_use(), 0U);
  }

 private:
  struct Entry {
    Message message;
    Bytes model;
  };
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  Bytes noise(std::size_t size) {
    Bytes bytes(size);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
    return bytes;
  }
  static void check(const Entry& entry) {
    ASSERT_EQ(entry.message.size(), entry.model.size());
    ASSERT_EQ(all(entry.message), entry.model);
  }
  void step() {
    if (entries_.size() < 2 || (entries_.size() < 12 && below(8) == 0)) {
      Bytes model = noise(below(4) == 0 ? below(6000) : below(40));
      entries_.push_back({Message::copy_of(pool_, model), model});
      return;
    }
    const std::size_t at = below(entries_.size());
    Entry& entry = entries_[at];
    switch (below(9)) {
      case 0:
      case 1: {
        const Bytes header = noise(1 + below(64));
        std::byte* const to = entry.message.push(header.size());
        ASSERT_NE(to, nullptr);
        std::copy(header.begin(), header.end(), to);
        entry.model.insert(entry.model.begin(), header.begin(), header.end());
        break;
      }
      case 2: {
        const std::size_t size = below(80);
        std::byte scratch[80];
        const std::byte* const popped = entry.message.pop(size, scratch);
        if (size > entry.model.size()) {
          ASSERT_EQ(popped, nullptr);
          break;
        }
        ASSERT_TRUE(std::equal(entry.model.begin(), entry.model.begin() + static_cast<std::ptrdiff_t>(size), popped));
        entry.model.erase(entry.model.begin(), entry.model.begin() + static_cast<std::ptrdiff_t>(size));
        break;
      }
      case 3: entries_.push_back({entry.message.share(), entry.model}); break;
      case 4: {
        const std::size_t size = std::min(below(3000), entry.model.size());
        const auto middle = entry.model.begin() + static_cast<std::ptrdiff_t>(size);
        Entry front{entry.message.split(size), Bytes(entry.model.begin(), middle)};
        entry.model.erase(entry.model.begin(), middle);
        check(front);
        entries_.push_back(std::move(front));
        break;
      }
      case 5: {
        const std::size_t other = below(entries_.size());
        if (other == at || entry.model.size() > 15000) break;
        Entry tail = std::move(entries_[other]);
        ASSERT_TRUE(entry.message.append(std::move(tail.message)));
        entry.model.insert(entry.model.end(), tail.model.begin(), tail.model.end());
        check(entry);
        entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(other));
        return;
      }
      case 6: {
        const std::size_t size = below(entry.model.size() + 10);
        entry.message.truncate(size);
        entry.model.resize(std::min(size, entry.model.size()));
        break;
      }
      case 7:
        if (entry.model.size() <= Message::kMaxContiguous) {
          ASSERT_TRUE(entry.message.flatten());
          ASSERT_TRUE(entry.message.contiguous());
          ASSERT_TRUE(std::equal(entry.model.begin(), entry.model.end(), entry.message.bytes().begin(),
                                 entry.message.bytes().end()));
        }
        break;
      default: {
        Message moved = std::move(entry.message);
        if (below(3) == 0) {
          entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
          return;
        }
        entry.message = std::move(moved);
        Bytes part(below(100));
        const std::size_t from = below(entry.model.size() + 5);
        const std::size_t copied = entry.message.copy_to(part, from);
        const std::size_t there = from < entry.model.size() ? entry.model.size() - from : 0;
        ASSERT_EQ(copied, std::min(part.size(), there));
        break;
      }
    }
    // Check the other messages too: the operation must not have written into their bytes.
    for (const Entry& each : entries_) check(each);
  }

  std::mt19937 random_;
  BufferPool pool_;
  std::vector<Entry> entries_;
};

class MessageProperty : public ::testing::TestWithParam<std::uint32_t> {};
TEST_P(MessageProperty, a_message_is_always_what_a_plain_array_would_be) { MessageModel(GetParam()).run(1500); }
INSTANTIATE_TEST_SUITE_P(Seeds, MessageProperty, ::testing::Range(1U, 13U));

}  // namespace
}  // namespace lrpc::netrpc
