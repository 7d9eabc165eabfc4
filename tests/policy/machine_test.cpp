// The simulated machine does what the policies are then judged by.
#include "machine.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lrpc::simulated
