#include "lrpc/detail/shim/system/sleeping_word.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "refused_calls.h"

namespace lrpc::shim {
namespace {

using namespace std::chrono_literals;

/// Sleeps on the word; one class for each way to sleep.
struct OneWord {
  static void sleep(SleepingWord& word, std::uint32_t seen, std::chrono::nanoseconds limit) {
    word.sleep_unless_changed(seen, limit);
  }
};
struct SeveralWords {
  static void sleep(SleepingWord& word, std::uint32_t seen, std::chrono::nanoseconds limit) {
    SleepingWord other;
    const FutexWait both[] = {other.unless_changed(other.look()), word.unless_changed(seen)};
    (void)futex_wait_any(both, limit);
  }
};
template <class Way>
class SleepingWords : public testing::Test {
 protected:
  void SetUp() override {
    if (std::is_same_v<Way, SeveralWords> && !can_wait_any()) GTEST_SKIP() << "futex_waitv(2) is refused here";
  }
  void sleep(std::uint32_t seen, std::chrono::nanoseconds limit) { Way::sleep(word, seen, limit); }
  /// Whether the sleep lasts for the whole limit.
  bool lets_sleep(std::uint32_t seen, std::chrono::nanoseconds limit = 20s) {
    const auto began = std::chrono::steady_clock::now();
    Way::sleep(word, seen, limit);
    return std::chrono::steady_clock::now() - began >= limit;
  }
  SleepingWord word;
};
using Ways = testing::Types<OneWord, SeveralWords>;
TYPED_TEST_SUITE(SleepingWords, Ways);

TYPED_TEST(SleepingWords, let_sleep_for_as_long_as_nothing_has_changed) {
  const std::uint32_t seen = this->word.look();
  EXPECT_FALSE(this->word.changed_since(seen));
  EXPECT_FALSE(this->word.stopped());
  EXPECT_TRUE(this->lets_sleep(seen, 1ms));
}

TYPED_TEST(SleepingWords, let_nobody_sleep_through_a_raise_after_the_look) {
  const std::uint32_t seen = this->word.look();
  this->word.raise(1);
  EXPECT_TRUE(this->word.changed_since(seen));
  EXPECT_FALSE(this->lets_sleep(seen));
  EXPECT_TRUE(this->lets_sleep(this->word.look(), 1ms));
  EXPECT_FALSE(this->word.stopped());
}

TYPED_TEST(SleepingWords, let_nobody_sleep_once_they_are_stopped_whether_the_look_has_seen_it_or_not) {
  const std::uint32_t seen = this->word.look();
  this->word.stop();
  EXPECT_TRUE(this->word.stopped());
  EXPECT_TRUE(this->word.changed_since(seen));
  EXPECT_FALSE(this->lets_sleep(seen));
  EXPECT_FALSE(this->lets_sleep(this->word.look()));
  this->word.raise(1);
  this->word.stop();
  EXPECT_TRUE(this->word.stopped());
  EXPECT_FALSE(this->lets_sleep(this->word.look()));
}

TYPED_TEST(SleepingWords, wake_all_sleepers_when_they_stop) {
  std::atomic<int> begun = 0;
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 8; ++i)
    sleepers.emplace_back([&] {
      ++begun;
      while (!this->word.stopped()) this->sleep(this->word.look(), -1ns);
    });
  while (begun != 8) std::this_thread::yield();
  std::this_thread::sleep_for(5ms);  // most of them sleep by now
  this->word.stop();
  for (std::thread& sleeper : sleepers) sleeper.join();
}

/// Without a limit: a raise that is missed would never be taken.
TYPED_TEST(SleepingWords, lose_nothing_between_many_who_bring_and_many_who_sleep) {
  constexpr int kEach = 4000;
  constexpr int kBringing = 2;
  constexpr int kSleeping = 4;
  std::mutex mutex;
  int there = 0;
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kSleeping; ++i)
    threads.emplace_back([&] {
      for (;;) {
        const std::uint32_t seen = this->word.look();
        {
          const std::lock_guard lock(mutex);
          if (there > 0) {
            --there;
            ++taken;
            continue;
          }
        }
        if (this->word.stopped()) return;
        this->sleep(seen, -1ns);
      }
    });
  const auto bring = [&](int others) {
    for (int i = 0; i < kEach; ++i) {
      {
        const std::lock_guard lock(mutex);
        ++there;
      }
      this->word.raise(1);
      if (i % 16 == others) std::this_thread::sleep_for(10us);  // so that some sleepers fall asleep
    }
  };
  std::vector<std::thread> bringing;
  for (int i = 0; i < kBringing; ++i) bringing.emplace_back(bring, i);
  for (std::thread& one : bringing) one.join();
  while (taken != kEach * kBringing) std::this_thread::yield();  // never ends if a raise was missed
  this->word.stop();
  for (std::thread& one : threads) one.join();
}

/// On a thread of its own, whose filter ends with it.
TEST(SleepingWord, wakes_as_the_first_of_several_even_where_the_kernel_takes_one_word_at_a_time) {
  bool refused = false;
  std::thread([&] {
    refused = testing_lrpc::refuse_calls(SYS_futex_waitv, ENOSYS);
    if (!refused) return;
    SleepingWord first;
    SleepingWord other;
    const FutexWait both[] = {first.unless_changed(first.look()), other.unless_changed(other.look())};
    const auto alone = std::span(both).first(1);
    EXPECT_EQ(futex_wait_any(alone, 5ms), Wake::timed_out) << "it sleeps for as long as it may";
    EXPECT_EQ(futex_wait_any(both, 1ms), Wake::timed_out);
    EXPECT_EQ(futex_wait_any(both, 1h), Wake::interrupted) << "the time is not over";
    std::thread raiser([&] { first.raise(); });
    const Wake wake = futex_wait_any(alone, -1ns);
    EXPECT_TRUE(wake == Wake::woken || wake == Wake::changed);
    raiser.join();
    EXPECT_EQ(futex_wait_any(both, 1h), Wake::changed);
  }).join();
  if (!refused) GTEST_SKIP() << testing_lrpc::kNoSuchKernel;
}

/// A thread that sees a raise also sees what was written before it, without a lock.
TEST(SleepingWord, orders_what_it_tells_of) {
  SleepingWord word;
  SleepingWord back;
  int plain = 0;
  constexpr int kRounds = 3000;
  std::thread other([&, seen = word.look()]() mutable {
    for (int i = 1; i <= kRounds; ++i) {
      std::uint32_t now = 0;
      while ((now = word.look()) == seen) word.sleep_unless_changed(seen);
      seen = now;
      EXPECT_EQ(plain, 2 * i - 1);
      ++plain;
      back.raise(1);
    }
  });
  std::uint32_t seen = back.look();
  for (int i = 1; i <= kRounds; ++i) {
    ++plain;
    word.raise(1);
    std::uint32_t now = 0;
    while ((now = back.look()) == seen) back.sleep_unless_changed(seen);
    seen = now;
    EXPECT_EQ(plain, 2 * i);
  }
  other.join();
}

/// Stops the word at every moment of another thread's way to sleep.
TEST(SleepingWord, is_stopped_at_any_moment) {
  for (int round = 0; round < 150; ++round) {
    SleepingWord word;
    std::atomic<bool> begun = false;
    std::thread sleeper([&] {
      begun = true;
      while (!word.stopped()) word.sleep_unless_changed(word.look());
    });
    while (!begun) std::this_thread::yield();
    for (int i = 0; i < round % 50 * 20; ++i) (void)word.changed_since(0);  // a little later in each round
    if (round % 3 == 0) word.raise(1);
    word.stop();
    sleeper.join();
  }
}

}  // namespace
}  // namespace lrpc::shim
