// Calling threads are interrupted by signals, cancelled, or end: no call is lost, doubled or left behind.
#include <pthread.h>
#include <signal.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "lrpc/raw_binding.h"
#include "lrpc/server.h"
#include "mortal_test.h"

namespace testing_lrpc {
namespace {

std::atomic<std::uint64_t> handled{0};

/// Sends some 10,000 signals a second to one thread, from construction to destruction.
class Storm {
 public:
  Storm(pthread_t target, int flags) {
    struct sigaction action {};
    action.sa_handler = [](int) { ++handled; };
    action.sa_flags = flags;
    sigaction(SIGUSR1, &action, &before_);
    thread_ = std::thread([this, target] {
      while (!stop_) {
        pthread_kill(target, SIGUSR1);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    });
  }
  ~Storm() {
    stop_ = true;
    thread_.join();
    sigaction(SIGUSR1, &before_, nullptr);
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 private:
  struct sigaction before_ {};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// A server process, and a client of it here.
class Domains {
 public:
  explicit Domains(lrpc::ImportOptions options = {}) : client_(import(std::move(options))) {}
  [[nodiscard]] lrpc::Result<Mortal::Client> import(lrpc::ImportOptions options = {}, const char* name = "mortal") {
    options.nameserver = world_.nameserver();
    return Mortal::Client::import(name, options);
  }
  Mortal::Client* operator->() { return &client_.value(); }
  [[nodiscard]] World& world() noexcept { return world_; }
  [[nodiscard]] Process& server() noexcept { return server_; }

 private:
  World world_;
  Process server_{{LRPC_TEST_MORTAL, "server", world_.nameserver(), "mortal"}};
  lrpc::Result<Mortal::Client> client_;
};

class Signals : public testing::TestWithParam<std::tuple<Gate, int>> {};

TEST_P(Signals, interrupt_every_wait_of_a_call_and_each_is_executed_once) {
  const auto [gate, flags] = GetParam();
  Domains domains({.gate = gate});
  handled = 0;
  const Storm storm(pthread_self(), flags);
  ASSERT_TRUE(eventually([] { return handled > 0; }));
  std::uint64_t calls = 0;
  for (; calls < 3'000; ++calls) {
    const auto counted = domains->Count();
    ASSERT_TRUE(counted) << counted.error().message();
    ASSERT_EQ(*counted, calls + 1);
  }
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(domains->Nap(5).value(), 2 * i + 1);
    auto started = domains->start().Nap(5);
    (void)started.wait_for(std::chrono::milliseconds(1));
    ASSERT_EQ(started.finish().value(), 2 * i + 2);
  }
}

TEST_P(Signals, hide_no_death_of_the_server_from_a_caller_without_a_watcher) {
  const auto [gate, flags] = GetParam();
  for (const bool started : {false, true}) {
    Domains domains({.gate = gate, .call_timeout = kPatience, .watcher = false});
    ASSERT_EQ(domains->Nap(0).value(), 1U);
    std::thread killer([&] {
      std::this_thread::sleep_for(20ms);
      domains.server().kill_and_wait();
    });
    const Storm storm(pthread_self(), flags);
    if (started) {
      auto call = domains->start().Nap(600'000);
      EXPECT_TRUE(call.wait_for(kPatience));
      EXPECT_EQ(call.finish().code(), Errc::call_failed);
    } else {
      EXPECT_EQ(domains->Nap(600'000).code(), Errc::call_failed);
    }
    killer.join();
  }
}

std::string name_of_storm(const testing::TestParamInfo<std::tuple<Gate, int>>& tested) {
  return std::string(name_of(std::get<0>(tested.param))) +
         (std::get<1>(tested.param) == 0 ? "_interrupting" : "_restarting");
}
INSTANTIATE_TEST_SUITE_P(of, Signals,
                         testing::Combine(testing::ValuesIn(kRepeatedGates), testing::Values(0, SA_RESTART)),
                         name_of_storm);

TEST(SignalsElsewhere, do_not_end_the_wait_for_an_astack) {
  Domains domains;
  std::vector<std::thread> others;
  for (int i = 0; i < 5; ++i) others.emplace_back([&] { EXPECT_TRUE(domains->Nap(100)); });
  std::this_thread::sleep_for(20ms);
  {
    const Storm storm(pthread_self(), 0);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(domains->Nap(0));
  }
  for (auto& other : others) other.join();
  EXPECT_EQ(domains->Nap(0).value(), 11U);
}

TEST(SignalsElsewhere, do_not_end_the_wait_of_a_completion_queue) {
  Domains domains;
  auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(queue);
  using std::chrono::milliseconds;
  for (const milliseconds limit : {milliseconds(kPatience), milliseconds(lrpc::kNoLimit)}) {
    auto nap = domains->start().Nap(100);
    ASSERT_TRUE((*queue)->watch(nap));
    const Storm storm(pthread_self(), SA_RESTART);
    EXPECT_EQ((*queue)->wait(limit), 1U);
    EXPECT_TRUE(nap.finish());
  }
}

TEST(SignalsElsewhere, do_not_end_an_import_that_waits) {
  Domains domains;
  std::atomic<int> sum{0};
  std::thread importer([&] {
    const Storm storm(pthread_self(), 0);
    auto client = domains.import({.timeout = kPatience}, "late");
    sum = client ? client->Add(1, 2).value() : -1;
  });
  std::this_thread::sleep_for(100ms);
  // Started by this thread: the kernel would kill the process together with the thread that started it.
  const Process late({LRPC_TEST_MORTAL, "server", domains.world().nameserver(), "late"});
  importer.join();
  EXPECT_EQ(sum, 3);
}

// ---- Threads that are cancelled, and threads that end ----

TEST(Cancellation, of_a_thread_takes_effect_after_its_call) {
  for (const Gate gate : kEveryGate) {
    Domains domains({.gate = gate});
    std::atomic<int> returned{0};
    std::atomic<bool> called{false};
    std::atomic<bool> cancelled{false};
    std::thread caller([&] {
      called = true;
      // Longer than the bounded sleep: after it the caller checks the server, with poll(2) and send(2).
      const auto napped = domains->Nap(150);
      if (napped && *napped == 1) ++returned;
      auto started = domains->start().Nap(30);
      if (started.finish().value() == 2) ++returned;
      while (!cancelled) std::this_thread::yield();
      int before = 0;
      pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
      if (before == PTHREAD_CANCEL_ENABLE) ++returned;
      pthread_testcancel();
      returned = -1;
    });
    EXPECT_TRUE(eventually([&] { return called.load(); }));
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(pthread_cancel(caller.native_handle()), 0);
    cancelled = true;
    caller.join();
    EXPECT_EQ(returned, 3);
    EXPECT_EQ(domains->Nap(0).value(), 3U) << "and the binding is whole";
  }
}

TEST(Cancellation, does_not_unwind_through_an_import_nor_through_the_end_of_a_binding) {
  Domains domains;
  std::atomic<int> returned{0};
  std::thread caller([&] {
    pthread_cancel(pthread_self());  // pending from now on
    {
      auto client = domains.import();
      if (client && client->Add(1, 2).value() == 3) ++returned;
      if (client && client->binding().revocation_fd()) ++returned;
      if (domains.import({.timeout = 50ms}, "nobody").code() == Errc::name_unknown) ++returned;
    }
    ++returned;
    pthread_testcancel();
    returned = -1;
  });
  caller.join();
  EXPECT_EQ(returned, 4);
}

TEST(Cancellation, does_not_unwind_through_a_raw_binding) {
  Domains domains;
  const lrpc::ImportOptions options{.nameserver = domains.world().nameserver()};
  std::atomic<int> returned{0};
  std::thread caller([&] {
    pthread_cancel(pthread_self());  // pending from now on
    if (lrpc::client::RawBinding::describe("mortal", options)) ++returned;
    {
      auto binding = lrpc::client::RawBinding::import("mortal", Mortal::kPdl.interface, std::nullopt, options);
      if (binding) binding->end();
      if (binding && binding->revoked()) ++returned;
    }
    ++returned;
    pthread_testcancel();
    returned = -1;
  });
  caller.join();
  EXPECT_EQ(returned, 3);
}

TEST(Threads, that_end_leave_their_astacks_to_others) {
  Domains domains({.supply = lrpc::AStackSupply::fail});
  for (int i = 0; i < 60; ++i) {
    std::thread([&] {
      // Leases one A-stack, and has a second one as a spare.
      EXPECT_TRUE(domains->Null());
      auto started = domains->start().Add(1, 2);
      EXPECT_EQ(started.finish().value(), 3);
    }).join();
  }
  std::vector<std::thread> threads;
  std::atomic<int> napped{0};
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] { napped += domains->Nap(100).has_value(); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(napped, 5) << "all of the class at once";
}

}  // namespace
}  // namespace testing_lrpc
