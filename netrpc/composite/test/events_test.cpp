// Events of composite protocols, without a composite protocol.
#include "netrpc/composite/events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

struct Alone {
  SimHosts net{1};
  Shepherd inside{net[0].monitor()};
  Events events{net[0].host()};
  std::vector<std::string> said;
  const Raisable<int>& event(const std::string& name, std::function<void(int)> handler,
                             std::function<bool(const int&)> guard = nullptr) {
    Raisable<int>* const found = events.find<int>(name);
    found->add(std::move(handler), std::move(guard));
    return *found;
  }
  std::function<void(int)> says(const std::string& what) {
    return [this, what](int number) { said.push_back(what + std::to_string(number)); };
  }
  void pass(Duration time) {
    inside.unlock();
    net.world.run_for(time);
    inside.lock();
  }
};

using Said = std::vector<std::string>;

TEST(CompositeEvents, go_to_the_handlers_whose_guards_let_them) {
  Alone alone;
  const auto& event = alone.event("E", alone.says("even "), [](const int& number) { return number % 2 == 0; });
  alone.event("E", alone.says("large "), [](const int& number) { return number > 10; });
  for (const int number : {1, 2, 11, 12}) alone.events.raise(event, Raise::synchronous, number);
  std::ranges::sort(alone.said);
  EXPECT_EQ(alone.said, (Said{"even 12", "even 2", "large 11", "large 12"}));
  EXPECT_EQ(alone.events.activations(), 4U);
  EXPECT_EQ(alone.events.raised(), 4U);
}

TEST(CompositeEvents, come_to_their_handlers_in_any_order) {
  std::set<Said> orders;
  for (int i = 0; i < 200; ++i) {
    Alone alone;
    for (const char* name : {"a", "b"}) (void)alone.event("E", alone.says(name));
    const Raisable<int>& event = alone.event("E", alone.says("c"));
    for (int drawn = 0; drawn <= i; ++drawn) alone.events.shuffle();
    alone.events.raise(event, Raise::synchronous, 0);
    orders.insert(alone.said);
  }
  EXPECT_EQ(orders.size(), 6U);
}

TEST(CompositeEvents, give_each_handler_a_copy_of_its_own) {
  Alone alone;
  std::vector<std::string> seen;
  auto* const event = alone.events.find<int, std::string>("Told");
  for (int i = 0; i < 2; ++i)
    event->add([&](int, std::string text) { seen.push_back(std::exchange(text, "spoiled")); }, nullptr);
  alone.events.raise(*event, Raise::synchronous, 1, "whole");
  EXPECT_EQ(seen, (Said{"whole", "whole"}));
}

TEST(CompositeEvents, raised_asynchronously_come_when_what_runs_has_ended_in_the_order_of_the_raises) {
  Alone alone;
  const auto& inner = alone.event("inner", alone.says("inner "));
  const auto& outer = alone.event("outer", [&](int number) {
    alone.events.raise(inner, Raise::asynchronous, number);
    alone.events.raise(inner, Raise::synchronous, number + 1);
    alone.said.push_back("outer " + std::to_string(number));
  });
  {
    const Events::Turn turn(alone.events);
    {
      const Events::Turn nested(alone.events);
      alone.events.raise(outer, Raise::synchronous, 10);
    }
    alone.events.raise(outer, Raise::asynchronous, 20);
    EXPECT_EQ(alone.said, (Said{"inner 11", "outer 10"}));
  }
  EXPECT_EQ(alone.said, (Said{"inner 11", "outer 10", "inner 10", "inner 21", "outer 20", "inner 20"}));
}

TEST(CompositeEvents, raised_asynchronously_when_nothing_runs_come_at_once) {
  Alone alone;
  const auto& inner = alone.event("inner", alone.says("inner "));
  const auto& outer = alone.event("outer", [&](int number) {
    alone.events.raise(inner, Raise::asynchronous, number);
    alone.said.push_back("outer " + std::to_string(number));
  });
  alone.events.raise(outer, Raise::asynchronous, 1);
  EXPECT_EQ(alone.said, (Said{"outer 1", "inner 1"}));
}

TEST(CompositeEvents, of_a_thread_do_not_wait_for_another_one_that_has_let_the_monitor_go) {
  Alone alone;
  const auto& event = alone.event("E", alone.says(""));
  {
    const Events::Turn turn(alone.events);
    alone.events.raise(event, Raise::asynchronous, 1);
    std::thread([&] {
      const Events::Turn its(alone.events);
      alone.events.raise(event, Raise::asynchronous, 2);
      alone.events.raise(event, Raise::asynchronous, 3);
    }).join();
    EXPECT_EQ(alone.said, (Said{"2", "3"}));
  }
  EXPECT_EQ(alone.said, (Said{"2", "3", "1"}));
}

TEST(CompositeEvents, do_not_wait_for_a_turn_that_has_led_outside_nor_for_those_of_others) {
  Alone alone;
  Events others(alone.net[0].host());
  const auto& event = alone.event("E", alone.says(""));
  {
    const Events::Turn turn(alone.events);
    alone.events.raise(event, Raise::asynchronous, 1);
    {
      const Events::Turn its(others);
      const Events::Turn within(alone.events);
      alone.events.raise(event, Raise::asynchronous, 2);
    }
    EXPECT_EQ(alone.said, Said{});
    {
      const Events::Outside outside(alone.events);
      const Events::Turn its(others);
      const Events::Turn again(alone.events);
      alone.events.raise(event, Raise::asynchronous, 3);
    }
    EXPECT_EQ(alone.said, Said{"3"});
    const Events::Turn within(alone.events);
    alone.events.raise(event, Raise::asynchronous, 4);
  }
  EXPECT_EQ(alone.said, (Said{"3", "1", "2", "4"}));
}

TEST(CompositeEvents, come_by_timers_once_or_again_until_they_are_cancelled) {
  Alone alone;
  Events::TimerId periodic = 0;
  int rings = 0;
  const auto& once = alone.event("once", alone.says("once "));
  const auto& again = alone.event("again", [&](int) {
    if (++rings == 3) alone.events.cancel_timer(periodic);  // cancels its own timer
  });
  periodic = alone.events.set_timer(again, 10ms, Repeat::periodic, 0);
  EXPECT_NE(alone.events.set_timer(once, 25ms, Repeat::once, 1), 0U);
  const Events::TimerId never = alone.events.set_timer(once, 20ms, Repeat::once, 2);
  alone.events.cancel_timer(never);
  alone.events.cancel_timer(never);
  alone.pass(24ms);
  EXPECT_EQ(rings, 2);
  EXPECT_TRUE(alone.said.empty());
  alone.pass(100ms);
  EXPECT_EQ(rings, 3);
  EXPECT_EQ(alone.said, Said{"once 1"});
  EXPECT_EQ(alone.events.timers(), 0U);
  EXPECT_NE(alone.events.set_timer(once, 1ms, Repeat::once, 3), 0U);  // still pending at the end
}

}  // namespace
}  // namespace lrpc::netrpc::composite
