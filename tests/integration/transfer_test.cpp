// Domain transfer as seen from outside: which thread executes a call, on which processor, how it is scheduled, and what
// is left when no calls come (LRPC §3.2, §3.4).
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "eventually.h"
#include "large.client.h"
#include "large.server.h"
#include "length.h"
#include "lrpc/client.h"
#include "lrpc/detail/shim/system/processor.h"
#include "lrpc/server.h"
#include "processor_time.h"

namespace testing_lrpc {
namespace {

using namespace std::chrono_literals;
using lrpc::Errc;
using Text = lrpc::String<65'535>;

/// Null runs the test's `body`; the other procedures are not called here.
class WatchedService {
 public:
  void Null(lrpc::CallContext&) { body(); }
  std::uint32_t Strings(lrpc::CallContext&, const Text&, const Text&, const Text&, const Text&, const Text&) {
    return 0;
  }
  lrpc::Result<Text, Large::Odd> Echo(lrpc::CallContext&, const Text& text) { return text; }
  std::function<void()> body = [] {};
};

/// A server in this process, and its clients.
struct Pair {
  explicit Pair(lrpc::ServerOptions options = {}) : server(std::move(options)) {}
  lrpc::Result<Large::Client> bind(lrpc::Gate gate = lrpc::Gate::adaptive, lrpc::ExportOptions options = {}) {
    auto ends = lrpc::shim::make_socket_pair();
    if (!ends) return ends.error();
    if (auto served = Large::serve_over(server, std::move(ends->first), service, std::move(options)); !served)
      return served.error();
    return Large::Client::import_over(std::move(ends->second), {.gate = gate});
  }
  WatchedService service;
  lrpc::Server server;
};

cpu_set_t own_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}

/// Like `taskset -ap`: confines every thread of this process.
void confine_process(const cpu_set_t& set) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    sched_setaffinity(std::stoi(task.path().filename()), sizeof set, &set);
  }
}

TEST(EStackLife, an_estack_without_calls_leaves_its_astack_and_the_next_call_gets_one) {
  Pair pair({.estack_idle = 100ms});
  // Atomic: client and server are one process here, and a race detector does not see that the call orders them.
  std::atomic<std::uint64_t> in_the_call = 0;
  pair.service.body = [&] { in_the_call = pair.server.statistics().estacks_associated; };
  auto client = pair.bind(lrpc::Gate::handoff);
  ASSERT_TRUE(client) << client.error().message();
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(client->Null());
    ASSERT_EQ(in_the_call, 1U);
    ASSERT_TRUE(eventually([&] { return pair.server.statistics().estacks_associated == 0; }));
    EXPECT_EQ(pair.server.statistics().estacks_released, static_cast<std::uint64_t>(round));
    // A detached E-stack looks at its A-stack once more, and could still serve the next call. So wait until it has
    // ended.
    ASSERT_TRUE(eventually([&] { return pair.server.statistics().estacks == 0; }));
  }
}

TEST(EStackLife, an_idle_estack_stands_by_for_the_first_call_of_a_new_binding) {
  Pair pair({.kept_estacks = 1});
  {
    auto first = pair.bind();
    auto second = pair.bind();  // answered when the clerk has finished its work for the first
    ASSERT_TRUE(first && second);
    EXPECT_EQ(pair.server.statistics().estacks, 0U) << "none is started before there is a call";
    ASSERT_TRUE(first->Null());
  }
  EXPECT_TRUE(eventually([&] {
    auto one = pair.bind();
    auto other = pair.bind();
    return one && other && pair.server.statistics().estacks_associated != 0;
  }));
  EXPECT_EQ(pair.server.statistics().estacks, 1U);
}

TEST(EStackLife, a_call_that_comes_just_when_its_estack_leaves_is_not_lost) {
  Pair pair({.estack_idle = 1ms});
  auto client = pair.bind(lrpc::Gate::sleep);
  ASSERT_TRUE(client);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(client->Null());
    std::this_thread::sleep_for(std::chrono::microseconds(900 + i % 200));
  }
  EXPECT_GT(pair.server.statistics().estacks_released, 0U);
}

TEST(EStackScheduling, is_what_the_export_asks_for_and_no_pollers) {
  Pair pair;
  std::atomic<int> policy{-1};
  std::atomic<int> niceness{-1};
  pair.service.body = [&] {
    policy = sched_getscheduler(0);
    niceness = getpriority(PRIO_PROCESS, 0);
  };
  lrpc::ExportOptions options;
  options.scheduling = lrpc::shim::Scheduling{.policy = lrpc::shim::Scheduling::Policy::batch, .nice = 7};
  auto scheduled = pair.bind(lrpc::Gate::adaptive, options);
  ASSERT_TRUE(scheduled) << scheduled.error().message();
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(scheduled->Null());
  EXPECT_EQ(policy, SCHED_BATCH);
  EXPECT_EQ(niceness, 7);
  EXPECT_EQ(pair.server.statistics().poller_hits, 0U);

  auto ordinary = pair.bind();
  ASSERT_TRUE(ordinary);
  ASSERT_TRUE(ordinary->Null());
  EXPECT_EQ(policy, SCHED_OTHER);
  EXPECT_EQ(niceness, getpriority(PRIO_PROCESS, 0));
}

TEST(EStackScheduling, does_not_pass_to_the_estack_that_comes_after) {
  Pair pair({.max_estacks = 1});
  std::atomic<int> niceness{-1};
  pair.service.body = [&] { niceness = getpriority(PRIO_PROCESS, 0); };
  lrpc::ExportOptions options;
  options.scheduling = lrpc::shim::Scheduling{.nice = 9};
  auto scheduled = pair.bind(lrpc::Gate::sleep, options);
  auto ordinary = pair.bind(lrpc::Gate::sleep);
  ASSERT_TRUE(scheduled && ordinary);
  for (int i = 0; i < 10; ++i) {  // the only E-stack moves between the two
    ASSERT_TRUE(scheduled->Null());
    EXPECT_EQ(niceness, 9);
    ASSERT_TRUE(ordinary->Null());
    EXPECT_EQ(niceness, getpriority(PRIO_PROCESS, 0));
  }
}

TEST(EStackScheduling, that_cannot_be_had_is_refused_at_export) {
  Pair pair;
  lrpc::ExportOptions options;
  using Policy = lrpc::Scheduling::Policy;
  for (const lrpc::Scheduling& wrong :
       {lrpc::Scheduling{.policy = Policy::fifo, .priority = 200},
        lrpc::Scheduling{.policy = Policy::fifo, .priority = 1, .nice = 5}, lrpc::Scheduling{.nice = 100},
        lrpc::Scheduling{.policy = Policy::idle, .nice = 5}}) {
    options.scheduling = wrong;
    const auto refused = pair.bind(lrpc::Gate::adaptive, options);
    ASSERT_EQ(refused.code(), Errc::invalid_argument);
    EXPECT_TRUE(refused.error().text.starts_with("Scheduling::")) << refused.error().text;
  }
}

TEST(Placement, follows_the_processors_that_the_domain_is_left_with) {
  const cpu_set_t all = own_affinity();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two processors";
  std::size_t last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &all)) --last;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);

  Pair pair;
  std::atomic<bool> confined{false};
  std::atomic<int> astray{0};
  pair.service.body = [&] {
    if (confined && sched_getcpu() != static_cast<int>(last)) ++astray;
  };
  auto client = pair.bind();
  ASSERT_TRUE(client);
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(client->Null());
  confine_process(one);
  EXPECT_TRUE(eventually([&] {  // the library looks every 10 ms
    astray = 0;
    confined = true;
    for (int i = 0; i < 5000; ++i) EXPECT_TRUE(client->Null());
    confined = false;
    return astray == 0;
  }));
  confine_process(all);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(client->Null());
}

TEST(Placement, of_a_caller_that_changes_processors_all_the_time_costs_no_call) {
  const cpu_set_t all = own_affinity();
  Pair pair;
  std::atomic<std::uint64_t> executed{0};
  pair.service.body = [&] { ++executed; };
  auto client = pair.bind();
  ASSERT_TRUE(client);
  std::uint64_t calls = 0;
  for (int round = 0; round < 100; ++round) {
    int processor = round % CPU_COUNT(&all);
    for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &all) && processor-- == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        sched_setaffinity(0, sizeof one, &one);
      }
    }
    for (int i = 0; i < 500; ++i, ++calls) ASSERT_TRUE(client->Null());
  }
  sched_setaffinity(0, sizeof all, &all);
  EXPECT_EQ(executed, calls);
}

TEST(DomainCaching, leaves_procedures_that_take_long_to_the_estacks) {
  const cpu_set_t all = own_affinity();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two processors";
  Pair pair;
  pair.service.body = [] {
    const auto until = std::chrono::steady_clock::now() + 300us;
    while (std::chrono::steady_clock::now() < until) {
    }
  };
  auto client = pair.bind(lrpc::Gate::exchange);
  ASSERT_TRUE(client);
  constexpr std::uint64_t kCalls = 200;
  // A round proves nothing if other threads took the processor, or if a poller was evicted, which loses calls for
  // another reason. Not every such round can be detected, so only many sound-looking rounds count as a failure.
  int sound = 0;
  for (int round = 0; sound < 20 && round < 60; ++round) {
    const auto before = pair.server.statistics();
    for (std::uint64_t i = 0; i < kCalls; ++i) EXPECT_TRUE(client->Null());
    const auto after = pair.server.statistics();
    if (after.poller_evictions != before.poller_evictions) continue;
    ++sound;
    if (after.poller_hits - before.poller_hits < kCalls / 4) return;
  }
  if (sound < 20) GTEST_SKIP() << "the machine is busy";
  FAIL() << "in none of " << sound << " rounds";
}

TEST(DomainCaching, begins_further_pollers_where_callers_queue_and_ends_them_when_they_do_no_more) {
  const cpu_set_t all = own_affinity();
  if (CPU_COUNT(&all) < 8) GTEST_SKIP() << "needs eight processors: for four callers, and for pollers";
  if (!lrpc::shim::is_processor(lrpc::shim::current_processor())) GTEST_SKIP() << "the C library registers no rseq";
  Pair pair;
  std::atomic<std::uint64_t> executed{0};
  pair.service.body = [&] { ++executed; };
  auto client = pair.bind();
  ASSERT_TRUE(client);
  std::atomic<std::uint64_t> calls{0};
  const auto call_on = [&](const std::stop_token& enough) {
    while (!enough.stop_requested()) {
      EXPECT_TRUE(client->Null());
      ++calls;
    }
  };
  for (int round = 0; round < 3; ++round) {
    std::jthread last(call_on);
    {
      std::vector<std::jthread> others;
      for (int i = 0; i < 3; ++i) others.emplace_back(call_on);
      EXPECT_TRUE(eventually([&] { return pair.server.statistics().polling > 1; })) << "round " << round;
    }
    EXPECT_TRUE(eventually([&] { return pair.server.statistics().polling <= 1; })) << "round " << round;
  }
  EXPECT_EQ(executed, calls);
}

TEST(DomainCaching, has_as_many_pollers_as_the_server_says) {
  Pair pair({.pollers = 1});
  auto client = pair.bind(lrpc::Gate::exchange);
  ASSERT_TRUE(client);
  std::atomic<std::uint32_t> most{0};
  std::vector<std::jthread> callers;
  std::atomic<int> calling{4};
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int call = 0; call < 20'000; ++call) EXPECT_TRUE(client->Null());
      --calling;
    });
  }
  while (calling != 0) most = std::max(most.load(), pair.server.statistics().polling);
  callers.clear();
  EXPECT_LE(most, 1U);
  EXPECT_EQ(pair.server.statistics().granted_pollers, 1U);
}

TEST(DomainCaching, costs_nothing_without_calls) {
  Pair pair;
  auto client = pair.bind();
  ASSERT_TRUE(client);
  for (int i = 0; i < 50'000; ++i) ASSERT_TRUE(client->Null());
  // On a busy machine the poller may need a while to park.
  EXPECT_TRUE(eventually([] {
    const auto before = processor_time(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(200ms);
    return processor_time(CLOCK_PROCESS_CPUTIME_ID) - before < 500us;
  })) << "it always takes processor time, without calls";
}

TEST(DomainCaching, takes_turns_on_the_callers_processors_where_these_are_all_and_loses_no_call) {
  const cpu_set_t all = own_affinity();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two processors";
  if (!lrpc::shim::is_processor(lrpc::shim::current_processor())) GTEST_SKIP() << "the C library registers no rseq";
  std::vector<std::uint16_t> two;
  for (std::uint16_t processor = 0; two.size() < 2; ++processor) {
    if (CPU_ISSET(processor, &all)) two.push_back(processor);
  }
  std::vector<std::jthread> callers;
  std::atomic<std::uint64_t> executed{0};
  std::atomic<std::uint64_t> calls{0};
  std::jthread program([&] {  // so that the server's threads have only these processors from their start
    cpu_set_t both;
    CPU_ZERO(&both);
    for (const std::uint16_t processor : two) CPU_SET(processor, &both);
    ASSERT_EQ(sched_setaffinity(0, sizeof both, &both), 0);
    Pair pair;
    pair.service.body = [&] { ++executed; };
    auto client = pair.bind();
    ASSERT_TRUE(client);
    const auto call_on = [&](const std::stop_token& enough, std::uint16_t processor) {
      ASSERT_TRUE(lrpc::shim::move_to_processor(processor));
      for (; !enough.stop_requested(); ++calls) EXPECT_TRUE(client->Null());
    };
    for (const std::uint16_t processor : two) callers.emplace_back(call_on, processor);
    EXPECT_TRUE(eventually([&] { return pair.server.statistics().guest_turns > 2; }));
    for (std::jthread& caller : callers) caller.request_stop();
    callers.clear();
  });
  program.join();
  EXPECT_EQ(executed, calls);
}

// The server ends when its poller has had no call for a window, and parks. Threads that wake all the time preempt the
// poller at any instruction, also between its last check and its sleep.
TEST(DomainCaching, ends_with_a_server_that_stops_just_when_its_poller_parks) {
  const cpu_set_t all = own_affinity();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two processors";
  std::uint64_t polled = 0;
  std::vector<std::jthread> wakers;
  for (int i = 0; i < 2; ++i) {
    wakers.emplace_back([](const std::stop_token& enough) {
      while (!enough.stop_requested()) std::this_thread::sleep_for(5us);
    });
  }
  for (int round = 0; round < rounds(400); ++round) {
    auto pair = std::make_unique<Pair>(lrpc::ServerOptions{.poll_window = 20us});
    auto client = pair->bind(lrpc::Gate::exchange);
    ASSERT_TRUE(client);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(client->Null());
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(round % 200 * 100);
    while (std::chrono::steady_clock::now() < until) {
    }
    polled += pair->server.statistics().poller_hits;
    pair.reset();
  }
  if (polled == 0) GTEST_SKIP() << "nobody has polled: the machine is busy";
}

TEST(DomainCaching, and_handing_over_give_right_answers_beside_hogs_that_come_and_go) {
  Pair pair;
  std::atomic<std::uint64_t> executed{0};
  pair.service.body = [&] { ++executed; };
  auto client = pair.bind();
  ASSERT_TRUE(client);
  std::atomic<bool> stop{false};
  std::thread hog;
  std::uint64_t calls = 0;
  for (int round = 0; round < 6; ++round) {
    stop = false;
    if (round % 2 == 1) {
      hog = std::thread([&] {
        while (!stop.load(std::memory_order_relaxed)) {
        }
      });
    }
    for (int i = 0; i < 3000; ++i, ++calls) ASSERT_TRUE(client->Null());
    stop = true;
    if (hog.joinable()) hog.join();
  }
  EXPECT_EQ(executed, calls);
}

}  // namespace
}  // namespace testing_lrpc
