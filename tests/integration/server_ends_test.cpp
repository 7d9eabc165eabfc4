// A server domain ends in every possible way while calls run over every gate (LRPC §5.3).
#include <sys/wait.h>

#include <atomic>
#include <list>
#include <vector>

#include "lrpc/server.h"

#include "mortal_test.h"

namespace testing_lrpc {
namespace {

/// A client's binding over one gate, with callers: one whose call the server holds, one that calls back to back, and
/// one started call that is finished later.
class Callers {
 public:
  explicit Callers(lrpc::Result<Mortal::Client> client)
      : client_(*std::move(client)),
        held_([this] { held_end = client_.Hold().code(); }),
        busy_([this] {
          while (call(calls.load())) ++calls;
        }),
        started_([this] {
          auto pending = client_.start().Hold();
          started_end = pending.finish().code();
        }) {}
  void join() {
    held_.join();
    busy_.join();
    started_.join();
  }
  [[nodiscard]] Mortal::Client& client() noexcept { return client_; }

  std::atomic<int> calls{0};
  std::atomic<int> wrong{0};
  Errc held_end{};
  Errc busy_end{};
  Errc started_end{};

 private:
  bool call(int number) {
    const auto sum = client_.Add(number, 1);
    if (sum && *sum != number + 1) ++wrong;
    busy_end = sum.code();
    return sum.has_value();
  }

  Mortal::Client client_;
  std::thread held_;
  std::thread busy_;
  std::thread started_;
};

class ServerEnds : public testing::TestWithParam<Ending> {};

TEST_P(ServerEnds, every_call_through_every_gate_has_call_failed_and_the_name_goes) {
  World world;
  Process server({LRPC_TEST_MORTAL, "server", world.nameserver(), "mortal"});
  std::list<Callers> callers;
  for (const Gate gate : kEveryGate) {
    auto client = Mortal::Client::import("mortal", {.nameserver = world.nameserver(), .gate = gate});
    ASSERT_TRUE(client) << client.error().message();
    callers.emplace_back(std::move(client));
  }
  for (auto& one : callers) {
    EXPECT_TRUE(eventually([&] { return one.calls >= 100; }));
  }
  EXPECT_TRUE(eventually([&] { return callers.front().client().Held().value() == 8; }));
  Errc met{};
  std::thread meeting([&] { met = callers.front().client().Meet(GetParam()).code(); });
  if (GetParam() == Ending::StopThenKill) {
    wait_until_stopped(server.pid());
    std::this_thread::sleep_for(250ms);
    EXPECT_FALSE(callers.front().client().binding().revoked()) << "who is stopped is not dead";
    server.kill_and_wait();
  }
  meeting.join();
  for (auto& one : callers) one.join();  // a child that the server leaves behind does not count as the server
  EXPECT_EQ(met, Errc::call_failed);
  for (auto& one : callers) {
    EXPECT_EQ(one.held_end, Errc::call_failed);
    EXPECT_EQ(one.started_end, Errc::call_failed);
    EXPECT_TRUE(one.busy_end == Errc::call_failed || one.busy_end == Errc::binding_revoked)
        << static_cast<int>(one.busy_end);
    EXPECT_EQ(one.wrong, 0);
    EXPECT_EQ(one.client().Null().code(), Errc::binding_revoked);
  }
  if (name_of(GetParam()).starts_with("exec")) {
    EXPECT_FALSE(has_ended(server.pid())) << "the process lives on, and is another domain";
  }
  EXPECT_TRUE(eventually([&] {
    return Mortal::Client::import("mortal", {.nameserver = world.nameserver()}).code() == Errc::name_unknown;
  }));
}

INSTANTIATE_TEST_SUITE_P(by, ServerEnds, testing::ValuesIn(kEveryEnding), name_of_ending);

/// Its procedures make a thread_local object that takes long to destroy.
class RememberingService : public MortalService {
 public:
  std::uint64_t Nap(lrpc::CallContext& context, std::uint32_t milliseconds) {
    struct Memory {
      explicit Memory(std::atomic<int>& of) : memories(of) { ++memories; }
      ~Memory() {
        std::this_thread::sleep_for(50ms);
        --memories;
      }
      std::atomic<int>& memories;
    };
    thread_local const Memory memory(memories);
    return MortalService::Nap(context, milliseconds);
  }
  std::atomic<int> memories{0};
};

TEST(EndOfTheServer, waits_for_what_procedures_have_made_for_their_threads) {
  RememberingService service;
  {
    lrpc::Server server({.estack_idle = 1ms});
    for (int i = 0; i < 2; ++i) {  // threads that end before the server, and threads that end with it
      auto ends = lrpc::shim::make_socket_pair();
      ASSERT_TRUE(ends);
      ASSERT_TRUE(Mortal::serve_over(server, std::move(ends->first), service));
      auto client = Mortal::Client::import_over(std::move(ends->second));
      ASSERT_TRUE(client) << client.error().message();
      std::vector<std::thread> callers;
      for (int caller = 0; caller < 4; ++caller) callers.emplace_back([&] { EXPECT_TRUE(client->Nap(20)); });
      for (auto& caller : callers) caller.join();
      EXPECT_GT(service.memories, 0);
    }
  }
  EXPECT_EQ(service.memories, 0);
}

TEST(EndOfTheServer, in_static_storage_does_not_wait_for_the_procedure_that_calls_exit) {
  World world;
  Process server({LRPC_TEST_MORTAL, "static-server", world.nameserver(), "mortal"});
  auto client = Mortal::Client::import("mortal", {.nameserver = world.nameserver()});
  ASSERT_TRUE(client) << client.error().message();
  std::thread held([&] {  // returns when it is abandoned, at the moment the binding ends
    const Errc outcome = client->Hold().code();
    EXPECT_TRUE(outcome == Errc::call_failed || outcome == Errc::ok) << describe(outcome);
  });
  EXPECT_TRUE(eventually([&] { return client->Held().value() == 1; }));
  EXPECT_EQ(client->Meet(Ending::Exit).code(), Errc::call_failed);
  held.join();
  int status = 0;
  EXPECT_TRUE(eventually([&] { return waitpid(server.pid(), &status, WNOHANG) == server.pid(); }));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
}

TEST(ServerStops, its_callers_wait_and_go_on_with_right_answers) {
  World world;
  const Process server({LRPC_TEST_MORTAL, "server", world.nameserver(), "mortal"});
  std::vector<std::thread> callers;
  std::atomic<int> calls{0};
  std::atomic<int> wrong{0};
  std::atomic<bool> enough{false};
  for (const Gate gate : kEveryGate) {
    callers.emplace_back([&, gate] {
      auto client = Mortal::Client::import("mortal", {.nameserver = world.nameserver(), .gate = gate});
      for (int i = 0; !enough; ++i, ++calls) {
        const auto sum = client ? client->Add(i, i) : lrpc::Result<std::int32_t>(client.error());
        if (!sum || *sum != 2 * i) ++wrong;
      }
    });
  }
  for (int round = 0; round < 5; ++round) {
    const int before = calls;
    EXPECT_TRUE(eventually([&] { return calls > before + 100; }));
    server.send(SIGSTOP);
    std::this_thread::sleep_for(60ms);
    server.send(SIGCONT);
  }
  enough = true;
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace testing_lrpc
