// Checks that the simulated machine schedules as the policies' tests assume.
#include "machine.h"

#include <gtest/gtest.h>

#include <vector>

#include "domains.h"

namespace lrpc::simulated {
namespace {

Life spin(Thread& me) {
  for (;;) co_await me.work(1);
}
Life yield_all_the_time(Thread& me) {
  for (;;) {
    co_await me.work(us(100));
    co_await me.yield();
  }
}
Life answer(Thread& me, Machine& machine, Thread*& asker, int& asked) {
  for (;;) {
    co_await me.wait();
    co_await me.work(us(1));
    ++asked;
    machine.wake(me, *asker);
  }
}
Life ask(Thread& me, Machine& machine, Thread*& answerer) {
  for (;;) {
    co_await me.work(us(1));
    machine.wake(me, *answerer);
    co_await me.wait();
  }
}

TEST(Machine, hogs_share_a_processor_by_slices) {
  Machine machine(1, {});
  Thread& one = machine.start(1, spin);
  Thread& other = machine.start(1, hog);
  machine.run_for(us(600'000));
  EXPECT_NEAR(static_cast<double>(one.ran()) / static_cast<double>(other.ran()), 1.0, 0.02);
  EXPECT_GE(one.involuntary(), 90U);
}

TEST(Machine, two_hogs_use_two_processors) {
  Machine machine(2, {});
  Thread& one = machine.start(machine.all(), hog);
  Thread& other = machine.start(machine.all(), hog);
  machine.run_for(us(100'000));
  EXPECT_GE(one.ran(), us(99'000));
  EXPECT_GE(other.ran(), us(99'000));
  EXPECT_NE(one.processor(), other.processor());
}

TEST(Machine, who_yields_gives_a_whole_slice_away) {
  Machine machine(1, {});
  Thread& yielding = machine.start(1, yield_all_the_time);
  Thread& other = machine.start(1, hog);
  machine.run_for(us(310'000));
  EXPECT_NEAR(static_cast<double>(yielding.ran()) / static_cast<double>(other.ran()), 1.0 / 30, 0.01);
}

TEST(Machine, wakes_who_waits_and_forgets_no_wake_up) {
  for (const unsigned processors : {1U, 2U}) {
    Machine machine(processors, {});
    Thread* asker = nullptr;
    Thread* answerer = nullptr;
    int asked = 0;
    answerer = &machine.start(machine.all(), [&](Thread& me) { return answer(me, machine, asker, asked); });
    asker = &machine.start(machine.all(), [&](Thread& me) { return ask(me, machine, answerer); });
    machine.run_for(us(10'000));
    EXPECT_GE(asked, 10'000 / 15) << processors;
  }
}

TEST(Machine, a_third_party_alone_is_done_in_time) {
  Machine machine(2, {});
  Calls done;
  machine.start(machine.all(), [&](Thread& me) { return third_party(me, machine, us(1'000), us(200), done); });
  machine.run_for(us(100'000));
  EXPECT_GE(done.count, 98U);
  EXPECT_LE(done.mean_us(), 203);
}

Life count(Thread& me, std::uint64_t& done) {
  for (;; ++done) co_await me.work(us(1));
}
Life sleep_and_work(Thread& me, Machine& machine, std::uint64_t& latest) {
  for (;;) {
    const std::uint64_t due = machine.now() + us(1'000);
    co_await me.sleep(us(1'000));
    latest = std::max(latest, machine.now() - due);
    co_await me.work(us(50));
  }
}
double share(std::uint64_t part, std::uint64_t of) { return static_cast<double>(part) / static_cast<double>(of); }

TEST(Machine, three_hogs_share_two_processors) {
  Machine machine(2, {.balanced = us(4'000)});
  std::vector<Thread*> hogs;
  for (int i = 0; i < 3; ++i) hogs.push_back(&machine.start(machine.all(), hog));
  machine.run_for(us(900'000));
  for (const Thread* one : hogs) EXPECT_NEAR(share(one->ran(), us(900'000)), 2.0 / 3, 0.1);
}

TEST(Machine, who_comes_from_a_busier_processor_waits_no_longer_than_who_was_there) {
  Machine machine(2, {});
  Thread& alone = machine.start(1, hog);
  machine.start(2, hog);
  machine.start(2, hog);
  machine.run_for(us(400'000));  // it has run twice as long as the others
  machine.confine(alone, 2);
  machine.run_for(us(100'000));
  EXPECT_NEAR(share(alone.ran() - us(400'000), us(33'333)), 1, 0.2);
}

TEST(Machine, a_frozen_processor_runs_nothing_and_the_steal_clock_knows_it) {
  for (const bool steal_clock : {true, false}) {
    Machine machine(2, {.steal_clock = steal_clock});
    std::uint64_t frozen = 0;
    std::uint64_t other = 0;
    Thread& thread = machine.start(1, [&](Thread& me) { return count(me, frozen); });
    machine.start(2, [&](Thread& me) { return count(me, other); });
    machine.run_for(us(10'000));
    machine.freeze(0, us(40'000));
    machine.run_for(us(40'000));
    EXPECT_LE(frozen, 10'000U);
    EXPECT_GE(other, 49'900U);
    machine.run_for(us(10'000));
    EXPECT_NEAR(share(frozen, 20'000), 1, 0.01);
    EXPECT_NEAR(share(thread.ran(), us(steal_clock ? 20'000 : 60'000)), 1, 0.01) << steal_clock;
    EXPECT_EQ(thread.involuntary(), 0U);
  }
}

TEST(Machine, timers_of_a_frozen_processor_are_late) {
  Machine machine(2, {});
  std::uint64_t latest = 0;
  Thread& thread = machine.start(1, [&](Thread& me) { return sleep_and_work(me, machine, latest); });
  machine.run_for(us(9'500));
  machine.start(1, hog);
  machine.confine(thread, machine.all());
  machine.freeze(0, us(5'000));
  machine.run_for(us(5'100));
  EXPECT_GE(latest, us(4'000)) << "although another one is idle";
  EXPECT_LE(latest, us(5'100));
}

TEST(Machine, a_group_that_is_stopped_leaves_its_processor_to_others) {
  Machine machine(1, {});
  Group& group = machine.add_group();
  Thread& stopped = machine.start(1, hog, {.group = &group});
  Thread& other = machine.start(1, hog);
  machine.run_for(us(100'000));
  const std::uint64_t had = stopped.ran();
  const std::uint64_t had_other = other.ran();
  machine.stop(group, us(50'000));
  machine.run_for(us(50'000));
  EXPECT_LE(stopped.ran(), had + us(1));
  EXPECT_GE(other.ran(), had_other + us(49'900));
  machine.run_for(us(50'000));
  EXPECT_GE(stopped.ran(), had + us(20'000));
}

TEST(Machine, a_quota_is_for_all_threads_of_its_group_together) {
  for (const int threads : {1, 2}) {
    Machine machine(2, {});
    Group& group = machine.add_group(us(50'000));
    for (int i = 0; i < threads; ++i) machine.start(machine.all(), hog, {.group = &group});
    machine.run_for(us(1'000'000));
    EXPECT_NEAR(share(machine.used(), us(1'000'000)), 0.5, 0.01) << threads;
  }
}

TEST(Machine, busy_siblings_slow_each_other_down) {
  for (const bool siblings : {true, false}) {
    Machine machine(2, {.siblings = siblings});
    std::uint64_t alone = 0;
    std::uint64_t other = 0;
    machine.start(1, [&](Thread& me) { return count(me, alone); });
    machine.run_for(us(10'000));
    EXPECT_GE(alone, 9'900U);
    machine.start(2, [&](Thread& me) { return count(me, other); });
    machine.run_for(us(10'000));
    EXPECT_NEAR(share(other, 10'000), siblings ? 0.6 : 1.0, 0.02);
    EXPECT_NEAR(share(alone, 20'000), siblings ? 0.8 : 1.0, 0.02);
  }
}

TEST(Machine, who_has_a_real_time_policy_gets_the_processor_at_once_and_keeps_it) {
  Machine machine(1, {});
  std::uint64_t latest = 0;
  machine.start(1, [&](Thread& me) { return sleep_and_work(me, machine, latest); }, {.realtime = true});
  Thread& other = machine.start(1, hog);
  machine.run_for(us(100'000));
  EXPECT_LE(latest, us(2));
  EXPECT_GE(other.ran(), us(90'000));
  machine.start(1, yield_all_the_time, {.realtime = true});
  machine.run_for(us(5'000));  // it first gets its turn
  const std::uint64_t had = other.ran();
  machine.run_for(us(100'000));
  EXPECT_EQ(other.ran(), had) << "a yield leaves nothing to those of less priority";
}

TEST(Machine, who_was_on_a_processor_that_goes_offline_runs_elsewhere) {
  Machine machine(2, {});
  Thread& bound = machine.start(2, hog);
  Thread& free = machine.start(machine.all(), hog);
  machine.run_for(us(10'000));
  machine.set_online(1, false);
  machine.run_for(us(100'000));
  EXPECT_EQ(bound.processor(), 0U);
  EXPECT_EQ(free.processor(), 0U);
  EXPECT_NEAR(share(bound.ran(), us(60'000)), 1, 0.1);
  machine.set_online(1, true);
  machine.run_for(us(100'000));
  EXPECT_GE(bound.ran() + free.ran(), us(300'000)) << "the kernel has forgotten where it was bound to";
}

TEST(Machine, who_is_confined_goes_and_who_is_let_free_may_return) {
  Machine machine(2, {});
  Thread& one = machine.start(machine.all(), hog);
  Thread& other = machine.start(machine.all(), hog);
  machine.run_for(us(1'000));
  machine.confine(one, 2);
  machine.confine(other, 2);
  machine.run_for(us(100'000));
  EXPECT_EQ(one.processor(), 1U);
  EXPECT_EQ(other.processor(), 1U);
  EXPECT_NEAR(share(one.ran(), other.ran()), 1, 0.1);
  machine.confine(one, machine.all());
  machine.confine(other, machine.all());
  machine.run_for(us(100'000));
  EXPECT_NE(one.processor(), other.processor());
}

TEST(Machine, what_comes_later_comes_then_and_may_bring_more) {
  Machine machine(1, {});
  std::vector<std::uint64_t> when;
  const std::uint64_t began = machine.now();
  machine.after(us(100), [&] {
    when.push_back(machine.now() - began);
    machine.after(us(50), [&] { when.push_back(machine.now() - began); });
  });
  machine.run_for(us(1'000));
  EXPECT_EQ(when, (std::vector{us(100), us(150)}));
}

TEST(Machine, a_wait_for_a_time_ends_then_or_with_a_wake_up) {
  Machine machine(1, {});
  std::uint64_t waited = 0;
  Thread& waits = machine.start(1, [&](Thread& me) -> Life {
    return [](Thread& self, Machine& on, std::uint64_t& took) -> Life {
      for (;;) {
        const std::uint64_t began = on.now();
        co_await self.wait_for(us(500));
        took = on.now() - began;
      }
    }(me, machine, waited);
  });
  machine.run_for(us(750));
  EXPECT_NEAR(share(waited, us(500)), 1, 0.02);
  machine.wake(waits, waits);
  machine.run_for(us(100));
  EXPECT_LE(waited, us(260));
}

}  // namespace
}  // namespace lrpc::simulated
