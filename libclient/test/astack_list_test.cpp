// The A-stacks of one class: which thread gets which, what is leased, and that no two threads ever hold the same one.
#include "lrpc/detail/client/binding/astack_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <span>
#include <thread>
#include <vector>

namespace lrpc::client {
namespace {

using namespace std::chrono_literals;
using shim::LinkageRecord;

/// A list of four A-stacks, in a binding with two more of another class before them.
class AStackLists : public testing::Test {
 protected:
  static constexpr std::uint32_t kFirst = 2;
  static constexpr std::uint32_t kCount = 4;

  AStackLists() {
    for (std::uint32_t i = 0; i < records_.size(); ++i) records_[i].index = i;
    list_.fill(records_, kFirst, kCount, &secondary_);
  }
  LinkageRecord* take() {
    if (LinkageRecord* const leased = AStackList::take_leased(list_.own_lease())) return leased;
    return list_.take_any();
  }
  std::vector<LinkageRecord*> take_all() {
    std::vector<LinkageRecord*> all;
    while (LinkageRecord* const record = take()) all.push_back(record);
    return all;
  }
  /// Runs `function` in a new thread, and joins it.
  template <class Function>
  static void elsewhere(Function function) {
    std::thread(function).join();
  }

  std::array<LinkageRecord, kFirst + kCount> records_;
  SecondaryRecords secondary_{kFirst + kCount};
  AStackList list_;
};

TEST_F(AStackLists, have_each_of_theirs_once_and_no_other) {
  const std::vector<LinkageRecord*> all = take_all();
  EXPECT_EQ(std::set<LinkageRecord*>(all.begin(), all.end()).size(), kCount);
  for (const LinkageRecord* record : all) EXPECT_GE(record->index, kFirst);
  EXPECT_EQ(list_.take_any(), nullptr);
  EXPECT_FALSE(list_.any_free());
  EXPECT_EQ(list_.count_idle(), 0U);
}

TEST_F(AStackLists, begin_with_the_first_and_give_back_first_what_was_put_back_last) {
  LinkageRecord* const a = list_.take_any();
  LinkageRecord* const b = list_.take_any();
  EXPECT_EQ(a->index, kFirst);
  EXPECT_EQ(b->index, kFirst + 1);
  list_.put_shared(*b);
  list_.put_shared(*a);
  EXPECT_EQ(list_.take_any(), a);
  EXPECT_EQ(list_.take_any(), b);
}

TEST_F(AStackLists, note_at_the_end_of_the_binding_which_astacks_lie_in_the_lifo) {
  const LinkageRecord* const in_call = list_.take_any();
  list_.put_shared(*list_.take_any());
  list_.close();
  list_.note_resting();
  for (const LinkageRecord& record : records_)
    EXPECT_EQ(record.rested, record.index >= kFirst && &record != in_call) << record.index;
  EXPECT_EQ(list_.count_idle(), kCount - 1) << "they stay there";
  EXPECT_NE(list_.take_any(), nullptr);
}

TEST_F(AStackLists, lease_to_a_thread_what_it_has_put_back) {
  LinkageRecord* const mine = take();
  list_.put(nullptr, *mine);
  AStackList::Lease& lease = list_.own_lease();
  if (lease.leased() == nullptr) GTEST_SKIP() << "membarrier(2) is refused here";
  EXPECT_EQ(AStackList::take_leased(lease), mine);
  EXPECT_EQ(AStackList::take_leased(lease), nullptr) << "it is in a call";
  EXPECT_NE(take(), mine) << "a nested call has another";
  list_.put(&lease, *mine);
  EXPECT_EQ(AStackList::take_leased(lease), mine);
}

TEST_F(AStackLists, end_the_lease_of_an_idle_thread_for_one_that_finds_nothing_else) {
  LinkageRecord* const mine = take();
  list_.put(nullptr, *mine);
  elsewhere([&] {
    std::vector<LinkageRecord*> others = take_all();
    EXPECT_EQ(others.size(), kCount);
    EXPECT_TRUE(std::ranges::find(others, mine) != others.end());
    for (LinkageRecord* record : others) list_.put_shared(*record);
  });
  EXPECT_EQ(AStackList::take_leased(list_.own_lease()), nullptr) << "it was taken";
  EXPECT_EQ(take_all().size(), kCount);
}

TEST_F(AStackLists, leave_a_lease_alone_that_is_in_a_call) {
  list_.put(nullptr, *take());
  AStackList::Lease& lease = list_.own_lease();
  LinkageRecord* const mine = AStackList::take_leased(lease);
  if (mine == nullptr) GTEST_SKIP() << "membarrier(2) is refused here";
  elsewhere([&] {
    for (LinkageRecord* record : take_all()) {
      EXPECT_NE(record, mine);
      list_.put_shared(*record);
    }
  });
  list_.put(&lease, *mine);
  EXPECT_EQ(AStackList::take_leased(lease), mine);
}

TEST_F(AStackLists, have_the_spares_of_a_thread_for_others_too) {
  LinkageRecord* const spare = list_.take_any();
  if (shim::calling_thread.number() >= kLeasingThreads) GTEST_SKIP() << "membarrier(2) is refused here";
  list_.put_spare(*spare);
  EXPECT_EQ(list_.take_spare(), spare);
  EXPECT_EQ(list_.take_spare(), nullptr);
  list_.put_spare(*spare);
  elsewhere([&] { EXPECT_EQ(take_all().size(), kCount); });
  EXPECT_EQ(list_.take_spare(), nullptr);
}

TEST_F(AStackLists, do_not_have_what_was_given_up_until_it_is_put_back) {
  list_.put(nullptr, *take());
  LinkageRecord* const mine = take();
  list_.give_up(*mine);
  EXPECT_EQ(take_all().size(), kCount - 1);
  elsewhere([&] { list_.put(nullptr, *mine); });
  EXPECT_EQ(take_all(), std::vector{mine});
}

TEST_F(AStackLists, that_are_closed_lease_nothing) {
  list_.put(nullptr, *take());
  list_.close();
  list_.close();
  EXPECT_EQ(AStackList::take_leased(list_.own_lease()), nullptr);
  EXPECT_EQ(list_.take_spare(), nullptr);
  const std::vector<LinkageRecord*> all = take_all();
  EXPECT_EQ(all.size(), kCount) << "what was leased has come back";
  list_.put(nullptr, *all.front());
  EXPECT_EQ(list_.own_lease().leased(), nullptr);
}

TEST_F(AStackLists, use_secondary_astacks_last_and_never_lease_them) {
  const std::span<LinkageRecord> block = secondary_.block(1);
  ASSERT_EQ(block.size(), shim::kMostAStacksInSecondary);
  EXPECT_EQ(secondary_.place_of(block[0]), 1U);
  list_.add(block.first(2));
  for (std::uint32_t i = 0; i < kCount; ++i) EXPECT_LT(take()->index, kFirst + kCount);
  LinkageRecord* const grown = take();
  ASSERT_EQ(grown, &block[0]);
  list_.put(nullptr, *grown);
  EXPECT_EQ(list_.own_lease().leased(), nullptr);
  EXPECT_EQ(list_.count_idle(), 2U);
}

TEST_F(AStackLists, that_are_emptied_for_the_trimmer_are_afterwards_what_they_were) {
  LinkageRecord* const hot = list_.take_any();
  list_.put_shared(*hot);
  std::vector<LinkageRecord*> idle;
  idle.reserve(records_.size());
  list_.take_idle(idle);
  ASSERT_EQ(idle.size(), kCount);
  EXPECT_EQ(idle.back(), hot);
  EXPECT_EQ(list_.take_any(), nullptr);
  list_.put_idle(idle);
  EXPECT_EQ(list_.take_any(), hot);
}

TEST_F(AStackLists, wake_those_that_wait_for_one) {
  const std::vector<LinkageRecord*> all = take_all();
  std::atomic<bool> found{false};
  std::thread waiter([&] {
    for (;;) {
      const std::uint32_t seen = list_.wakes();
      if (list_.take_any() != nullptr) break;
      list_.wait(seen, 24h, {});
    }
    found = true;
  });
  std::this_thread::sleep_for(2ms);
  EXPECT_FALSE(found);
  list_.put(nullptr, *all.front());
  waiter.join();
  EXPECT_TRUE(found);
}

TEST_F(AStackLists, lease_nothing_that_is_put_back_while_somebody_starves) {
  list_.put(nullptr, *take());
  AStackList::Lease& lease = list_.own_lease();
  LinkageRecord* const mine = AStackList::take_leased(lease);
  if (mine == nullptr) GTEST_SKIP() << "membarrier(2) is refused here";
  list_.starve();
  EXPECT_TRUE(list_.anybody_starves());
  list_.put(&lease, *mine);
  EXPECT_EQ(lease.leased(), nullptr) << "it had been leased before";
  ASSERT_EQ(list_.take_any(), mine);
  list_.put(nullptr, *mine);
  EXPECT_EQ(lease.leased(), nullptr) << "it was leased anew";
  ASSERT_EQ(list_.take_any(), mine);
  list_.put_spare(*mine);
  EXPECT_EQ(list_.take_spare(), nullptr);
  elsewhere([&] { EXPECT_EQ(list_.take_own(), nullptr) << "that thread lets others go first"; });
  list_.end_starving();
  EXPECT_FALSE(list_.anybody_starves());
  ASSERT_EQ(list_.take_any(), mine);
  list_.put(nullptr, *mine);
  EXPECT_EQ(lease.leased(), mine);
  EXPECT_EQ(list_.count_idle(), kCount);
}

TEST_F(AStackLists, give_a_thread_that_lets_others_go_first_its_own) {
  LinkageRecord* const mine = take();
  list_.put(nullptr, *mine);
  AStackList::Lease& lease = list_.own_lease();
  if (lease.leased() == nullptr) GTEST_SKIP() << "membarrier(2) is refused here";
  ASSERT_EQ(list_.take_any(), mine) << "it is in a call now";
  LinkageRecord* const other = list_.take_any();
  list_.put_spare(*other);
  EXPECT_EQ(list_.take_own(), other);
  EXPECT_EQ(list_.take_own(), nullptr) << "it is in a call";
  list_.put(&lease, *mine);
  EXPECT_EQ(list_.take_own(), mine);
  EXPECT_EQ(lease.leased(), nullptr);
}

TEST_F(AStackLists, keep_no_lease_and_no_spare_of_a_thread_that_puts_one_back_while_somebody_starves) {
  LinkageRecord* const first = list_.take_any();
  LinkageRecord* const second = list_.take_any();
  LinkageRecord* const mine = list_.take_any();
  list_.put(nullptr, *mine);
  AStackList::Lease& lease = list_.own_lease();
  if (lease.leased() == nullptr) GTEST_SKIP() << "membarrier(2) is refused here";
  list_.put_spare(*first);
  list_.put_spare(*second);
  ASSERT_EQ(AStackList::take_leased(lease), mine);
  list_.starve();
  list_.put(&lease, *mine);
  EXPECT_EQ(AStackList::take_leased(lease), nullptr) << "a spare went in its place";
  EXPECT_EQ(list_.take_spare(), nullptr);
  EXPECT_EQ(list_.count_idle(), kCount);
  list_.end_starving();
}

/// They wait although there are A-stacks, because another thread starves.
TEST_F(AStackLists, wake_those_that_wait_behind_when_nobody_starves_any_more) {
  list_.starve();
  list_.starve();
  std::atomic<bool> served{false};
  std::thread waiter([&] {
    while (list_.anybody_starves()) list_.wait(list_.wakes(), 24h, {}, true);
    served = true;
  });
  std::this_thread::sleep_for(2ms);
  list_.end_starving();
  EXPECT_FALSE(served);
  list_.end_starving();
  waiter.join();
}

/// Each holder marks what it holds.
TEST_F(AStackLists, never_give_one_to_two_threads) {
  std::array<std::atomic<int>, kFirst + kCount> holders{};
  std::atomic<int> shared{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2'000;) {
        AStackList::Lease& own = list_.own_lease();
        LinkageRecord* record = AStackList::take_leased(own);
        AStackList::Lease* const lease = record == nullptr ? nullptr : &own;
        if (record == nullptr) record = list_.take_any();
        if (record == nullptr) {
          list_.wait(list_.wakes(), 1ms, {});
          continue;
        }
        if (holders[record->index].fetch_add(1) != 0) ++shared;
        if (i % 16 == t) std::this_thread::yield();
        holders[record->index].fetch_sub(1);
        if (lease == nullptr && (i + t) % 3 == 0) {
          list_.give_up(*record);
          list_.put_spare(*record);
        } else {
          list_.put(lease, *record);
        }
        ++i;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shared, 0);
  EXPECT_EQ(list_.count_idle(), kCount);
}

}  // namespace
}  // namespace lrpc::client
