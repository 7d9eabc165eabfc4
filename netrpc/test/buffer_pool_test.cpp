#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "lrpc/netrpc/buffer_pool.h"
#include "lrpc/netrpc/message.h"

namespace lrpc::netrpc {
namespace {

TEST(BufferPool, a_buffer_is_large_enough_and_comes_back) {
  BufferPool pool;
  for (const std::size_t size : {std::size_t{0}, std::size_t{512}, std::size_t{513}, std::size_t{20480}}) {
    Buffer* const buffer = pool.take(size);
    ASSERT_NE(buffer, nullptr);
    EXPECT_GE(buffer->capacity, size);
    BufferPool::release(*buffer);
    EXPECT_EQ(pool.take(size), buffer);
    BufferPool::release(*buffer);
  }
  EXPECT_EQ(pool.take(20481), nullptr);
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(pool.allocations(), 3U);
}

TEST(BufferPool, the_last_reference_lets_a_buffer_go) {
  BufferPool pool;
  Buffer* const buffer = pool.take(10);
  EXPECT_TRUE(buffer->unique());
  BufferPool::retain(*buffer);
  EXPECT_FALSE(buffer->unique());
  BufferPool::release(*buffer);
  EXPECT_EQ(pool.in_use(), 1U);
  BufferPool::release(*buffer);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(BufferPool, threads_take_and_let_go_of_each_others_buffers) {
  BufferPool pool(std::size_t{1} << 20);
  std::mutex mutex;
  std::vector<Message> handed_over;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3000; ++i) {
        Message message = Message::make(pool, static_cast<std::size_t>(i % 3) * 1500);
        if (!message.allocated()) continue;
        for (std::byte& each : message.bytes()) each = static_cast<std::byte>(t);
        Message taken;
        {
          const std::lock_guard lock(mutex);
          handed_over.push_back(std::move(message));
          if (handed_over.size() > 16) {
            taken = std::move(handed_over.front());
            handed_over.erase(handed_over.begin());
          }
        }
        // Exactly one thread must have written the whole buffer.
        for (const std::byte each : taken.bytes())
          if (each != taken.bytes().front()) ++wrong;
        Message tail = taken.split(taken.size() / 2);
        (void)tail.append(std::move(taken));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  handed_over.clear();
  EXPECT_EQ(pool.in_use(), 0U);
}

}  // namespace
}  // namespace lrpc::netrpc
