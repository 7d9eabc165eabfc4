#include "lrpc/netrpc/fifo_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

#include "length.h"

namespace lrpc::netrpc {
namespace {

TEST(FifoQueues, are_what_a_deque_is) {
  std::mt19937_64 random(testing_lrpc::test_seed());
  FifoQueue<std::unique_ptr<int>> queue;
  std::deque<int> same;
  for (int i = 0; i < 20'000; ++i) {
    const bool grows = i / 1000 % 2 == 0;
    const auto choice = random() % 8;
    if (choice < (grows ? 5U : 2U)) {
      queue.push_back(std::make_unique<int>(i));
      same.push_back(i);
    } else if (!same.empty() && choice == 7) {
      queue.pop_back();
      same.pop_back();
    } else if (!same.empty()) {
      queue.pop_front();
      same.pop_front();
    }
    ASSERT_EQ(queue.size(), same.size());
    ASSERT_EQ(queue.empty(), same.empty());
    if (same.empty()) continue;
    ASSERT_EQ(*queue.front(), same.front());
    ASSERT_EQ(*queue.back(), same.back());
  }
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

TEST(FifoQueues, keep_nothing_alive_that_has_left_them) {
  FifoQueue<std::shared_ptr<int>> queue;
  const auto one = std::make_shared<int>(1);
  queue.push_back(std::shared_ptr<int>(one));
  queue.push_back(std::shared_ptr<int>(one));
  queue.pop_front();
  queue.pop_back();
  EXPECT_EQ(one.use_count(), 1);
}

TEST(FifoQueues, that_were_moved_from_are_empty) {
  FifoQueue<int> queue;
  for (int i = 0; i < 3; ++i) queue.push_back(int(i));
  FifoQueue<int> other = std::move(queue);
  EXPECT_EQ(other.size(), 3U);
  EXPECT_TRUE(queue.empty());  // NOLINT(bugprone-use-after-move): that is what it is about
  queue.push_back(7);
  EXPECT_EQ(queue.front(), 7);
  EXPECT_EQ(other.front(), 0);
}

}  // namespace
}  // namespace lrpc::netrpc
