#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "graph_kinds.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

class Events : public ::testing::Test {
 protected:
  std::unique_ptr<Event> event(char name) {
    return std::make_unique<Event>([this, name] { log_ += name; });
  }
  test::ManualClock clock_;
  EventManager events_{clock_};
  std::string log_;
};

TEST_F(Events, run_in_the_order_of_time_and_then_of_scheduling) {
  const auto a = event('a'), b = event('b'), c = event('c'), d = event('d');
  events_.schedule(*c, 3ms);
  events_.schedule(*a, 1ms);
  events_.schedule(*d, 3ms);
  events_.schedule(*b, 2ms);
  EXPECT_EQ(events_.next_due(), clock_.now() + 1ms);
  EXPECT_EQ(events_.run_due(), 0U);
  clock_.advance(2ms);
  EXPECT_EQ(events_.run_due(), 2U);
  EXPECT_EQ(log_, "ab");
  clock_.advance(1s);
  EXPECT_EQ(events_.run_due(), 2U);
  EXPECT_EQ(log_, "abcd");
  EXPECT_EQ(events_.next_due(), std::nullopt);
}

TEST_F(Events, one_that_waits_is_moved) {
  const auto a = event('a'), b = event('b');
  events_.schedule(*a, 1ms);
  events_.schedule(*b, 2ms);
  events_.schedule(*a, 3ms);
  EXPECT_EQ(events_.waiting(), 2U);
  clock_.advance(5ms);
  events_.run_due();
  EXPECT_EQ(log_, "ba");
}

TEST_F(Events, one_may_schedule_itself_and_is_not_run_twice_at_a_time) {
  std::unique_ptr<Event> again;
  again = std::make_unique<Event>([&] {
    log_ += 'x';
    events_.schedule(*again, 0ns);
  });
  events_.schedule(*again, 0ns);
  EXPECT_EQ(events_.run_due(), 1U);  // only the events that were due at the start
  EXPECT_EQ(events_.run_due(), 1U);
  EXPECT_EQ(log_, "xx");
  EXPECT_EQ(events_.waiting(), 1U);
}

TEST_F(Events, what_is_scheduled_by_a_procedure_waits_for_the_next_time) {
  const auto b = event('b');
  Event a([&] {
    log_ += 'a';
    events_.schedule(*b, 0ns);
  });
  const auto c = event('c');
  events_.schedule(a, 0ns);
  events_.schedule(*c, 0ns);
  EXPECT_EQ(events_.run_due(), 2U);
  EXPECT_EQ(log_, "ac");
  EXPECT_EQ(events_.run_due(), 1U);
  EXPECT_EQ(log_, "acb");
}

TEST_F(Events, cancelling_says_what_it_found) {
  std::unique_ptr<Event> own;
  Cancelled inside = Cancelled::has_run;
  own = std::make_unique<Event>([&] { inside = events_.cancel(*own); });
  EXPECT_EQ(events_.cancel(*own), Cancelled::has_run);
  events_.schedule(*own, 1ms);
  EXPECT_TRUE(own->waiting());
  EXPECT_EQ(events_.cancel(*own), Cancelled::will_not_run);
  EXPECT_FALSE(own->waiting());
  clock_.advance(1s);
  EXPECT_EQ(events_.run_due(), 0U);
  events_.schedule(*own, 0ns);
  events_.run_due();
  EXPECT_EQ(inside, Cancelled::is_running);
  EXPECT_EQ(events_.cancel(*own), Cancelled::has_run);
}

TEST_F(Events, one_may_be_destroyed_by_its_own_procedure_and_others_by_it) {
  auto other = event('o');
  std::unique_ptr<Event> own;
  Event** const watched = new Event*(nullptr);
  own = std::make_unique<Event>([&own, &other, watched] {
    auto& kept_own = own;  // the captured variables are destroyed together with the event
    other.reset();
    delete watched;
    kept_own.reset();
  });
  events_.schedule(*own, 0ns);
  events_.schedule(*other, 0ns);
  EXPECT_EQ(events_.run_due(), 1U);
  EXPECT_EQ(own, nullptr);
  EXPECT_EQ(events_.waiting(), 0U);
}

TEST_F(Events, one_that_runs_again_while_its_procedure_is_under_way_may_be_destroyed_by_either) {
  // As when a procedure lets the monitor go, and another thread runs what is due.
  for (const int destroys : {1, 2}) {
    int depth = 0;
    std::unique_ptr<Event> own;
    own = std::make_unique<Event>([&, destroys] {
      const int mine = ++depth;
      auto& kept = own;
      auto& manager = events_;
      const int which = destroys;
      if (mine == 1) {
        manager.schedule(*kept, 0ns);
        manager.run_due();
      }
      if (mine == which && kept != nullptr) kept.reset();
    });
    events_.schedule(*own, 0ns);
    EXPECT_EQ(events_.run_due(), 1U);
    EXPECT_EQ(own, nullptr);
  }
}

TEST_F(Events, a_destroyed_event_does_not_run_and_one_may_outlive_its_manager) {
  auto gone = event('g');
  events_.schedule(*gone, 0ns);
  gone.reset();
  EXPECT_EQ(events_.run_due(), 0U);
  const auto waits = event('w'), ran = event('r');
  {
    EventManager manager(clock_);
    manager.schedule(*ran, 0ns);
    manager.run_due();
    manager.schedule(*waits, 1ms);
  }
  EXPECT_FALSE(waits->waiting());
  EXPECT_EQ(log_, "r");
}

TEST_F(Events, who_sleeps_is_told_of_an_earlier_one) {
  int told = 0;
  events_.on_earlier([&] { ++told; });
  const auto a = event('a'), b = event('b'), c = event('c');
  events_.schedule(*a, 5ms);
  EXPECT_EQ(told, 1);
  events_.schedule(*b, 9ms);
  EXPECT_EQ(told, 1);
  events_.schedule(*c, 1ms);
  EXPECT_EQ(told, 2);
}

TEST_F(Events, a_delay_without_end_does_not_overflow) {
  const auto a = event('a');
  events_.schedule(*a, Duration::max());
  EXPECT_EQ(events_.next_due(), Time::max());
  EXPECT_EQ(events_.run_due(), 0U);
}

TEST_F(Events, thousands_run_in_order) {
  std::mt19937 random(5);  // NOLINT: the same every time
  std::vector<std::unique_ptr<Event>> all;
  std::vector<Time> due;
  Time last{};
  int ran = 0;
  for (std::size_t i = 0; i < 3000; ++i) {
    all.push_back(std::make_unique<Event>([&, i] {
      EXPECT_GE(due[i], last);
      EXPECT_LE(due[i], clock_.now());
      last = due[i];
      ++ran;
    }));
    due.emplace_back();
  }
  int cancelled = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Duration delay = std::chrono::microseconds(random() % 100000);
      due[i] = clock_.now() + delay;
      events_.schedule(*all[i], delay);
    }
  }
  for (std::size_t i = 0; i < all.size(); i += 3)
    cancelled += events_.cancel(*all[i]) == Cancelled::will_not_run ? 1 : 0;
  for (int i = 0; i < 100; ++i) {
    clock_.advance(1ms);
    events_.run_due();
  }
  EXPECT_EQ(cancelled, 1000);
  EXPECT_EQ(ran, 2000);
}

}  // namespace
}  // namespace lrpc::netrpc
