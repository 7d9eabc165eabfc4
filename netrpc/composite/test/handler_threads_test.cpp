// Thread dispatch: the same micro-protocols, with their handlers in threads of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/test/two.h"
#include "netrpc/devices/engine/uring_engine.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

struct WithThreads {
  explicit WithThreads(std::size_t threads) : events(net[0].host(), threads) {}
  ~WithThreads() { inside.unlock(); }
  const Raisable<int>& event(const std::string& name, std::function<void(int)> handler) {
    Raisable<int>* const found = events.find<int>(name);
    found->add(std::move(handler), nullptr);
    return *found;
  }
  SimHosts net{1};
  Events events;
  Shepherd inside{net[0].monitor()};
};

TEST(HandlerThreads, run_handlers_in_the_monitor_and_not_in_the_thread_that_raises) {
  WithThreads with(3);
  std::set<std::thread::id> threads;
  const auto notes = [&](int) {
    EXPECT_TRUE(with.net[0].monitor().held());
    threads.insert(std::this_thread::get_id());
  };
  for (int i = 0; i < 2; ++i) (void)with.event("E", notes);
  const Raisable<int>& event = with.event("E", notes);
  for (int i = 0; i < 1000; ++i) with.events.raise(event, Raise::synchronous, i);
  EXPECT_EQ(with.events.activations(), 3000U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
  EXPECT_TRUE(with.net[0].monitor().held());
}

TEST(HandlerThreads, a_handler_that_blocks_does_not_hold_up_the_others) {
  WithThreads with(2);
  std::atomic<int> passed = 0;
  const auto blocks = [&](int) {
    ++passed;
    with.net[0].monitor().unlock();  // as every blocking operation does
    while (passed != 2) std::this_thread::yield();
    with.net[0].monitor().lock();
  };
  (void)with.event("E", blocks);
  with.events.raise(with.event("E", blocks), Raise::synchronous, 0);
  EXPECT_EQ(passed, 2);
}

TEST(HandlerThreads, raises_may_go_deeper_than_there_are_threads) {
  WithThreads with(2);
  int deepest = 0;
  const Raisable<int>* event = nullptr;
  event = &with.event("E", [&](int depth) {
    deepest = std::max(deepest, depth);
    if (depth < 20) with.events.raise(*event, Raise::synchronous, depth + 1);
  });
  with.events.raise(*event, Raise::synchronous, 1);
  EXPECT_EQ(deepest, 20);
}

TEST(HandlerThreads, what_is_raised_asynchronously_has_run_when_the_turn_has_ended) {
  WithThreads with(3);
  int inner_ran = 0;
  const Raisable<int>& inner = with.event("inner", [&](int) { ++inner_ran; });
  const Raisable<int>& outer = with.event("outer", [&](int number) {
    for (int i = 0; i < number; ++i) with.events.raise(inner, Raise::asynchronous, i);
  });
  {
    const Events::Turn turn(with.events);
    for (int i = 0; i < 10; ++i) with.events.raise(outer, Raise::asynchronous, 10);
  }
  EXPECT_EQ(inner_ran, 100);
  with.events.raise(inner, Raise::asynchronous, 0);  // outside any turn
  EXPECT_EQ(inner_ran, 101);
}

TEST(HandlerThreads, timers_raise_in_threads_too) {
  WithThreads with(2);
  int rings = 0;
  const auto& ring = with.event("ring", [&, here = std::this_thread::get_id()](int) {
    EXPECT_NE(std::this_thread::get_id(), here);
    ++rings;
  });
  const Events::TimerId timer = with.events.set_timer(ring, 10ms, Repeat::periodic, 0);
  with.inside.unlock();
  with.net.world.run_for(105ms);
  with.inside.lock();
  EXPECT_EQ(rings, 10);
  with.events.cancel_timer(timer);
}

TEST(HandlerThreads, a_handler_may_wait_for_what_the_engine_brings) {
  const MonotonicClock clock;
  const auto made = UringEngine::make(EngineKind::automatic);
  ASSERT_TRUE(made) << made.error().message();
  UringEngine& engine = **made;
  HostOptions options;
  options.address = {0x7f000001U};
  Host host(std::move(options), clock, engine);
  ASSERT_TRUE(engine.start(host, 1));
  bool came = false;
  std::atomic<int> waited = -1;
  {
    std::optional<Events> events;
    Event later([&] {
      came = true;
      engine.wake(host);
    });
    {
      const Shepherd inside(host.monitor());
      events.emplace(host, 1);
      Raisable<int>* const ring = events->find<int>("ring");
      ring->add(
          [&](int) {
            host.events().schedule(later, 1ms);
            waited = engine.wait(
                host, [&] { return came; }, host.now() + 600s);
          },
          nullptr);
      EXPECT_NE(events->set_timer(*ring, 1ms, Repeat::once, 0), 0U);  // the receiving thread raises it
    }
    while (waited < 0) std::this_thread::sleep_for(1ms);
    engine.stop();
    const Shepherd inside(host.monitor());
    events.reset();
  }
  EXPECT_EQ(waited, 1);
}

TEST(HandlerThreads, the_suite_keeps_its_promises_with_them) {
  for (const std::size_t threads : {1U, 2U, 8U}) {
    SimOptions options;
    options.seed = threads;
    options.link = {.loss = 0.2, .duplicate = 0.2, .reorder = 0.5};
    Two two(
        [](std::size_t) {
          std::vector<Part> parts;
          for (MicroKind& kind : datagram_kinds()) parts.push_back({std::move(kind)});
          for (Part& part : parts) {
            if (part.kind.name == "ACK") part.options.set("tries", "100");
            if (part.kind.name == "FIFO") part.options.set("patience", "100s");
          }
          return parts;
        },
        options, threads);
    std::vector<std::string> sent;
    for (int i = 0; i < 100; ++i) {
      sent.push_back(std::to_string(i));
      EXPECT_EQ(two.push(sent.back()), Errc::ok);
      two.net.world.run_for(100us);
    }
    two.net.world.run_for(60s);
    EXPECT_EQ(two.sink[1]->received, sent);
    for (Framework* const one : two.layer) EXPECT_EQ(one->bag().count(), 0U);
  }
}

}  // namespace
}  // namespace lrpc::netrpc::composite
