// The processor allocator's policy, with simulated domains on a simulated machine. Time is counted in ticks.
#include "allocator/allocator.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "allocator/machine_load.h"

namespace lrpc::nameserver {
namespace {

using std::chrono::milliseconds;

constexpr uid_t kAlice = 1000;
constexpr uid_t kBob = 1001;

/// Servers that behave as real ones: with a poller their calls are hits; otherwise they are hot calls, and the flag is
/// set.
class AllocatorPolicy : public ::testing::Test {
 protected:
  struct Server {
    uid_t user = kAlice;
    std::uint64_t calls = 0;  ///< Per tick with a poller; without one, an eighth of it.
    double callers = 1;       ///< Processors that its callers keep busy.
    Allocator::Look look;
  };

  Server& server(Allocator::DomainId id, std::uint64_t calls, uid_t user = kAlice) {
    Server& made = servers_[id];
    made.user = user;
    made.calls = calls;
    made.look.id = id;
    made.look.processor_time = milliseconds(0);
    allocator_.add(id, user);
    return made;
  }
  void begin() { allocator_.begin(looks()); }

  void tick(int times = 1) {
    for (int i = 0; i < times; ++i) {
      MachineLoad load{.processors = processors_, .idle = static_cast<double>(processors_), .running = hogs_};
      for (auto& [id, one] : servers_) {
        shim::CountersCopy& counters = one.look.counters;
        // Without a ruling a busy server polls.
        const bool polled = one.calls > 0 && allocator_.ruling(id).value_or(1) > 0;
        counters.polling = polled;
        counters.wants_poller = one.calls > 0 && !polled;
        (polled ? counters.hits : counters.hot_calls) += polled ? one.calls : one.calls / 8;
        if (one.calls == 0) continue;
        *one.look.processor_time += milliseconds(40);
        load.running += one.callers + (polled ? 1 : 0);
      }
      load.idle = std::max(0.0, load.idle - load.running);
      allocator_.tick(looks(), load);
    }
  }
  [[nodiscard]] bool granted(Allocator::DomainId id) const { return allocator_.ruling(id).value_or(0) > 0; }
  [[nodiscard]] std::vector<Allocator::Look> looks() const {
    std::vector<Allocator::Look> all;
    for (const auto& [id, one] : servers_) all.push_back(one.look);
    return all;
  }
  /// How many grants change within this many ticks.
  int changes_within(int ticks) {
    int changes = 0;
    for (int i = 0; i < ticks; ++i) {
      std::map<Allocator::DomainId, bool> before;
      for (const auto& [id, one] : servers_) before[id] = granted(id);
      tick();
      for (const auto& [id, had] : before) changes += granted(id) != had ? 1 : 0;
    }
    return changes;
  }

  unsigned processors_ = 2;
  double hogs_ = 0;
  Allocator allocator_;
  std::map<Allocator::DomainId, Server> servers_;
};

TEST_F(AllocatorPolicy, who_is_new_has_no_ruling_until_the_load_is_known) {
  server(1, 1000);
  begin();
  EXPECT_FALSE(allocator_.ruling(1));
  tick();
  EXPECT_FALSE(allocator_.ruling(1));
  tick(2);
  EXPECT_TRUE(allocator_.ruling(1));
  EXPECT_FALSE(allocator_.ruling(77)) << "nobody";
}

TEST_F(AllocatorPolicy, is_contended_while_more_are_active_than_may_poll) {
  processors_ = 2;
  server(1, 10'000);
  server(2, 0);
  begin();
  tick(3);
  EXPECT_FALSE(allocator_.contended());
  servers_[2].calls = 5'000;
  tick(3);
  EXPECT_TRUE(allocator_.contended());
  servers_[2].calls = 0;
  tick(2 * Allocator::kTicksToLose);
  EXPECT_FALSE(allocator_.contended());
}

TEST_F(AllocatorPolicy, the_busy_one_polls_and_the_idle_one_does_not) {
  server(1, 10'000);
  server(2, 0);
  begin();
  tick(6);
  EXPECT_TRUE(granted(1));
  EXPECT_EQ(allocator_.ruling(2), 0U);
  EXPECT_EQ(allocator_.granted(), 1U);
}

TEST_F(AllocatorPolicy, grants_follow_when_the_roles_swap) {
  Server& one = server(1, 10'000);
  Server& two = server(2, 0);
  begin();
  tick(6);
  for (int round = 0; round < 3; ++round) {
    std::swap(one.calls, two.calls);
    tick(20);
    EXPECT_EQ(granted(1), one.calls > 0) << round;
    EXPECT_EQ(granted(2), two.calls > 0) << round;
  }
}

TEST_F(AllocatorPolicy, nobody_polls_on_one_processor) {
  processors_ = 1;
  server(1, 10'000);
  begin();
  tick(20);
  EXPECT_EQ(allocator_.granted(), 0U);
}

TEST_F(AllocatorPolicy, all_but_one_processor_poll_at_most) {
  processors_ = 4;
  for (Allocator::DomainId id = 1; id <= 8; ++id) server(id, 10'000).callers = 0;  // as if called by one sleepy caller
  begin();
  tick(40);
  EXPECT_EQ(allocator_.granted(), 3U);
}

TEST_F(AllocatorPolicy, each_poller_needs_its_callers_processor_too) {
  processors_ = 4;
  for (Allocator::DomainId id = 1; id <= 8; ++id) server(id, 0);
  begin();
  tick(6);
  servers_[1].calls = servers_[2].calls = 10'000;
  tick(20);
  EXPECT_EQ(allocator_.granted(), 2U);
  servers_[3].calls = servers_[4].calls = 10'000;
  tick(20);
  EXPECT_LE(allocator_.granted(), 2U) << "four callers and two pollers are more than four processors";
}

TEST_F(AllocatorPolicy, the_most_active_go_first) {
  processors_ = 3;
  server(1, 0);
  server(2, 0);
  server(3, 0);
  begin();
  tick(6);
  for (Allocator::DomainId id = 1; id <= 3; ++id) {
    servers_[id].calls = 8'000 * id;
    servers_[id].callers = 0.4;
  }
  tick(6);
  EXPECT_TRUE(granted(3));
  EXPECT_FALSE(granted(1));
}

TEST_F(AllocatorPolicy, no_grant_flaps_between_equals_nor_on_a_machine_that_is_just_full) {
  server(1, 10'000).callers = 0.5;
  server(2, 10'000).callers = 0.5;
  begin();
  tick(20);
  EXPECT_EQ(allocator_.granted(), 1U);
  EXPECT_EQ(changes_within(200), 0);
}

TEST_F(AllocatorPolicy, one_that_is_much_more_active_takes_the_place_of_the_weakest) {
  server(1, 1'000).callers = 0.5;
  server(2, 0).callers = 0.5;
  begin();
  tick(10);
  ASSERT_TRUE(granted(1));
  servers_[2].calls = 1'500;
  tick(20);
  EXPECT_TRUE(granted(1)) << "half as much again is not much more";
  servers_[2].calls = 100'000;
  tick(10);
  EXPECT_TRUE(granted(2));
  EXPECT_FALSE(granted(1));
  EXPECT_EQ(changes_within(100), 0);
}

TEST_F(AllocatorPolicy, pollers_are_taken_back_while_there_is_more_to_run_than_processors_and_come_back_after_it) {
  server(1, 10'000);
  begin();
  tick(6);
  ASSERT_TRUE(granted(1));
  hogs_ = 2;
  tick(6);
  EXPECT_FALSE(granted(1));
  EXPECT_EQ(changes_within(100), 0) << "as long as the hogs are there";
  hogs_ = 0;
  tick(6);
  EXPECT_TRUE(granted(1));
}

TEST_F(AllocatorPolicy, one_whose_poller_is_switched_out_again_and_again_loses_it_for_longer_and_longer) {
  Server& one = server(1, 10'000);
  begin();
  tick(6);
  int waited_before = 0;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(granted(1));
    int patience = 100;
    for (; granted(1) && patience > 0; --patience) {
      ++one.look.counters.evictions;
      tick();
    }
    ASSERT_FALSE(granted(1));
    int waited = 0;
    for (; !granted(1) && waited < 1000; ++waited) tick();
    EXPECT_GT(waited, waited_before);
    waited_before = waited;
  }
}

TEST_F(AllocatorPolicy, a_poller_that_is_switched_out_now_and_then_stays) {
  Server& one = server(1, 10'000);
  begin();
  tick(6);
  for (int i = 0; i < 100; ++i) {
    if (i % 3 == 0) ++one.look.counters.evictions;
    tick();
    ASSERT_TRUE(granted(1)) << i;
  }
}

TEST_F(AllocatorPolicy, users_share) {
  processors_ = 3;
  for (Allocator::DomainId id = 1; id <= 5; ++id) server(id, 100'000, kAlice).callers = 0;
  server(9, 0, kBob).callers = 0;
  begin();
  tick(20);
  EXPECT_EQ(allocator_.granted(), 2U) << "nobody else asks";
  servers_[9].calls = 1'000;
  tick(20);
  EXPECT_TRUE(granted(9)) << "Bob's little comes before Alice's second";
  EXPECT_EQ(allocator_.granted(), 2U);
  EXPECT_EQ(changes_within(100), 0);
  servers_[9].calls = 0;
  tick(20);
  EXPECT_FALSE(granted(9));
  EXPECT_EQ(allocator_.granted(), 2U);
}

TEST_F(AllocatorPolicy, a_liar_without_processor_time_is_not_active) {
  server(1, 10'000).callers = 0.5;
  server(2, 0);
  begin();
  tick(6);
  for (int i = 0; i < 50; ++i) {
    shim::CountersCopy& lie = servers_[2].look.counters;
    lie.hits += 1'000'000'000;
    lie.hot_calls += 1'000'000'000;
    lie.wants_poller = true;
    lie.polling = true;
    allocator_.tick(looks(), {.processors = 8, .idle = 8, .running = 0});
    ASSERT_FALSE(granted(2));
  }
}

TEST_F(AllocatorPolicy, counters_full_of_garbage_harm_nobody_else) {
  server(1, 10'000, kAlice).callers = 0.5;
  server(2, 1, kBob).callers = 0.5;
  begin();
  tick(6);
  std::uint64_t noise = 88172645463325252U;
  const auto next = [&] { return noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17; };
  bool ever = false;
  for (int i = 0; i < 1000; ++i) {
    tick();
    servers_[2].look.counters = {next(), next(), next(), next(), (next() & 1) != 0, (next() & 1) != 0};
    ASSERT_LE(allocator_.granted(), 1U);
    ever = ever || granted(1);
  }
  EXPECT_TRUE(ever);
  servers_[2].look.counters = {};
  servers_[2].calls = 0;
  tick(20);
  EXPECT_TRUE(granted(1)) << "as soon as the liar stops";
}

TEST_F(AllocatorPolicy, counters_that_go_backwards_count_as_nothing) {
  server(1, 0);
  begin();
  tick(6);
  servers_[1].look.counters.hits = std::numeric_limits<std::uint64_t>::max();
  tick();
  servers_[1].look.counters.hits = 5;
  tick(Allocator::kTicksToSleep);
  EXPECT_TRUE(allocator_.nothing_to_do());
}

TEST_F(AllocatorPolicy, there_is_nothing_to_do_after_some_ticks_without_activity) {
  server(1, 10'000);
  begin();
  tick(20);
  EXPECT_FALSE(allocator_.nothing_to_do());
  servers_[1].calls = 0;
  tick(Allocator::kTicksToLose);
  EXPECT_FALSE(granted(1)) << "before that";
  EXPECT_FALSE(allocator_.nothing_to_do());
  tick(Allocator::kTicksToSleep);
  EXPECT_TRUE(allocator_.nothing_to_do());
  begin();
  EXPECT_FALSE(allocator_.nothing_to_do());
  EXPECT_FALSE(allocator_.ruling(1));
}

TEST_F(AllocatorPolicy, a_server_that_goes_leaves_its_processor_to_the_next) {
  server(1, 10'000).callers = 0.5;
  server(2, 10'000).callers = 0.5;
  begin();
  tick(10);
  const Allocator::DomainId first = granted(1) ? 1 : 2;
  allocator_.remove(first);
  servers_.erase(first);
  tick(10);
  EXPECT_TRUE(granted(3 - first));
}

TEST_F(AllocatorPolicy, a_server_that_comes_while_the_others_are_busy_waits_for_its_turn) {
  server(1, 10'000);
  begin();
  tick(10);
  server(2, 0);
  EXPECT_FALSE(allocator_.ruling(2));
  tick(4);
  EXPECT_EQ(allocator_.ruling(2), 0U);
  EXPECT_TRUE(granted(1));
}

// ---- What the machine reports ----

TEST(MachineLoadFiles, say_what_the_kernel_prints) {
  const auto idle = parse_uptime("13815.49 10358.53\n");
  ASSERT_TRUE(idle);
  EXPECT_DOUBLE_EQ(idle->up, 13815.49);
  EXPECT_DOUBLE_EQ(idle->idle, 10358.53);
  EXPECT_EQ(parse_running("0.35 1.98 1.74 3/94 11367\n"), 3U);
}

TEST(MachineLoadFiles, that_look_otherwise_are_not_believed) {
  for (const char* bad : {"", "1", "1.0", "1.0 ", "1.0 x", "-1.0 2.0", "a b"}) EXPECT_FALSE(parse_uptime(bad)) << bad;
  for (const char* bad : {"", "1 2 3", "1 2 3 4", "1 2 3 /4", "1 2 3 x/4"}) EXPECT_FALSE(parse_running(bad)) << bad;
}

TEST(MachineLoadFiles, of_this_machine_can_be_read) {
  auto load = proc_machine_load();
  if (!load) GTEST_SKIP() << load.error().message();
  const auto now = (*load)();
  ASSERT_TRUE(now);
  EXPECT_GT(now->processors, 0U);
  EXPECT_LE(now->idle, now->processors);
}

}  // namespace
}  // namespace lrpc::nameserver
