// The lrpcd process dies while domains call and import (LRPC §3.1, §5.3).
#include <stdexcept>
#include <vector>

#include "mortal_test.h"

namespace testing_lrpc {
namespace {

/// An lrpcd on a socket in its own directory. It can be started again.
class Lrpcd {
 public:
  Lrpcd() { start(); }
  /// Retries, as a service manager does: the kernel closes what the dead one's io_uring holds, its listening socket
  /// among it, only a moment after the death.
  void start() {
    for (int attempt = 1;; ++attempt) {
      try {
        process_ = Process({LRPC_TEST_LRPCD, "--socket", socket(), "--bind-timeout-ms", std::to_string(kPatienceMs)});
        return;
      } catch (const std::runtime_error&) {
        if (attempt == 4'000) throw;
        std::this_thread::sleep_for(50ms);
      }
    }
  }
  void kill() { process_.kill_and_wait(); }
  void send(int signal) { process_.send(signal); }
  [[nodiscard]] std::string socket() const { return (directory_.path() / "lrpcd.sock").string(); }

 private:
  TemporaryDirectory directory_;
  Process process_;
};

TEST(LrpcdDies, under_calls_through_every_gate_which_never_notice) {
  Lrpcd lrpcd;
  const Process server({LRPC_TEST_MORTAL, "server", lrpcd.socket(), "mortal"});
  std::vector<std::thread> callers;
  std::atomic<int> calls{0};
  std::atomic<int> wrong{0};
  std::atomic<bool> enough{false};
  std::atomic<int> bound{0};
  for (const Gate gate : kEveryGate) {
    callers.emplace_back([&, gate] {
      auto client = Mortal::Client::import("mortal", {.nameserver = lrpcd.socket(), .gate = gate});
      bound += client.has_value();
      for (int i = 0; client && !enough; ++i, ++calls) {
        const auto sum = client->Add(i, i);
        if (!sum || *sum != 2 * i) ++wrong;
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return bound == 4 && calls > 100; }));
  for (int round = 0; round < 3; ++round) {
    lrpcd.kill();
    const int before = calls;
    EXPECT_TRUE(eventually([&] { return calls > before + 200; }));
    lrpcd.start();
    auto client = Mortal::Client::import("mortal", {.nameserver = lrpcd.socket(), .timeout = kPatience});
    ASSERT_TRUE(client) << client.error().message();
    EXPECT_EQ(client->Pid().value(), server.pid()) << "the name came back";
  }
  enough = true;
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LrpcdDies, under_importers_that_wait_and_are_served_by_the_next) {
  Lrpcd lrpcd;
  std::vector<std::thread> importers;
  std::atomic<int> served{0};
  for (int i = 0; i < 4; ++i) {
    importers.emplace_back([&] {
      auto client = Mortal::Client::import("late", {.nameserver = lrpcd.socket(), .timeout = kPatience});
      // An import fails at once while there is no nameserver.
      while (client.code() == Errc::no_nameserver)
        client = Mortal::Client::import("late", {.nameserver = lrpcd.socket(), .timeout = kPatience});
      served += client && client->Add(1, 2).value() == 3;
    });
  }
  std::this_thread::sleep_for(100ms);
  lrpcd.kill();
  std::this_thread::sleep_for(100ms);
  lrpcd.start();
  const Process server({LRPC_TEST_MORTAL, "server", lrpcd.socket(), "late"});
  for (auto& importer : importers) importer.join();
  EXPECT_EQ(served, 4);
}

TEST(LrpcdStops, and_holds_up_imports_alone_until_it_goes_on) {
  Lrpcd lrpcd;
  const Process server({LRPC_TEST_MORTAL, "server", lrpcd.socket(), "mortal"});
  auto client = Mortal::Client::import("mortal", {.nameserver = lrpcd.socket()});
  ASSERT_TRUE(client) << client.error().message();
  lrpcd.send(SIGSTOP);
  std::atomic<bool> imported{false};
  std::thread importer([&] {
    auto late = Mortal::Client::import("mortal", {.nameserver = lrpcd.socket(), .timeout = kPatience});
    imported = late.has_value();
  });
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(client->Add(i, 1).value(), i + 1);
  EXPECT_FALSE(imported);
  lrpcd.send(SIGCONT);
  importer.join();
  EXPECT_TRUE(imported);
}

}  // namespace
}  // namespace testing_lrpc
