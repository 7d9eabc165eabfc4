// Domain termination (LRPC §5.3): if either side dies, calls end with call_failed and nobody else is harmed.
#include <gtest/gtest.h>

#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "conformance_service.h"
#include "eventually.h"
#include "gated_service.h"
#include "gates.h"
#include "length.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

class Death : public testing::TestWithParam<Gate> {};

/// Waits until the server has `number` E-stacks: each call under way holds one. `observer` asks for the count.
bool so_many_estacks(Conformance::Client& observer, std::uint64_t number) {
  return eventually([&] {
    const auto counted = observer.Statistics();
    return counted && counted->estacks >= number;
  });
}

TEST_P(Death, a_server_that_dies_in_a_call_fails_the_call) {
  World world;
  const Process server = world.start_server({"mortal"});
  auto client = world.import("mortal", {.gate = GetParam()});
  ASSERT_TRUE(client) << client.error().message();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(client->Null());
  EXPECT_EQ(client->Die().code(), Errc::call_failed);
  EXPECT_EQ(client->Null().code(), Errc::binding_revoked);
}

TEST_P(Death, a_killed_server_fails_every_outstanding_call) {
  World world;
  Process server = world.start_server({"mortal"});
  auto client = world.import("mortal", {.gate = GetParam()});
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { failed += client->SleepFor(kForeverMs).code() == Errc::call_failed; });
  }
  auto observer = world.import("mortal", {.gate = Gate::sleep});
  ASSERT_TRUE(observer) << observer.error().message();
  EXPECT_TRUE(so_many_estacks(*observer, 5));
  server.kill_and_wait();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 4);
}

TEST_P(Death, a_death_is_noticed_without_the_watcher_too) {
  World world;
  Process server = world.start_server({"mortal"});
  auto client = world.import("mortal", {.gate = GetParam(), .watcher = false});
  ASSERT_TRUE(client) << client.error().message();
  auto observer = world.import("mortal", {.gate = Gate::sleep});
  ASSERT_TRUE(observer) << observer.error().message();
  std::thread killer([&] {
    EXPECT_TRUE(so_many_estacks(*observer, 2));
    server.kill_and_wait();
  });
  EXPECT_EQ(client->SleepFor(kForeverMs).code(), Errc::call_failed);
  killer.join();
}

INSTANTIATE_TEST_SUITE_P(gates, Death, testing::ValuesIn(kRepeatedGates), gate_name);

TEST(Termination, a_dead_client_is_cleaned_up_and_others_never_notice) {
  World world;
  const Process server = world.start_server({"arith"});
  auto survivor = world.import("arith");
  ASSERT_TRUE(survivor);
  const pid_t child = fork();
  if (child == 0) {
    // A fork child has no bindings of its parent, but can make its own.
    auto own = world.import("arith");
    if (!own || !own->Open(5) || !own->Open(6)) _exit(1);
    kill(getpid(), SIGKILL);
  }
  for (int i = 0; i < 500; ++i) ASSERT_EQ(survivor->Add(i, i).value(), 2 * i);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(eventually([&] { return survivor->LiveObjects().value() == 0; }));
  EXPECT_EQ(survivor->Statistics().value().bindings, 1U);
}

TEST(Termination, the_revocation_callback_runs_once) {
  World world;
  Process server = world.start_server({"mortal"});
  std::atomic<int> told{0};
  auto client = world.import("mortal", {.on_revoked = [&] { ++told; }});
  ASSERT_TRUE(client && client->Null());
  server.kill_and_wait();
  EXPECT_TRUE(eventually([&] { return told != 0; }));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(client->binding().revoked());
}

TEST(Termination, a_fork_child_finds_its_bindings_revoked_and_the_parent_keeps_them) {
  World world;
  const Process server = world.start_server({"arith"});
  auto client = world.import("arith");
  ASSERT_TRUE(client && client->Null());
  const pid_t child = fork();
  if (child == 0) _exit(client->Null().code() == Errc::binding_revoked ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(client->Add(3, 4).value(), 7);
}

TEST(Termination, a_fork_child_cannot_use_its_parents_server) {
  if (kSanitized) GTEST_SKIP() << "forks beside threads, and a sanitizer's allocator does not know of forks";
  World world;
  lrpc::Server server({.nameserver = world.nameserver()});
  ConformanceService service(&server);
  std::atomic<std::uint64_t> bound{0};
  lrpc::ExportOptions options;
  options.on_bound = [&](std::uint64_t binding, const lrpc::Credentials&) { bound = binding; };
  const auto exported = Conformance::export_to(server, "mine", service, options);
  ASSERT_TRUE(exported);
  auto client = world.import("mine");
  ASSERT_TRUE(client && client->Null());
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  const pid_t child = fork();
  if (child == 0) {
    server.end_binding(bound);
    const auto refused = [](const auto& result) { return result.code() == Errc::not_supported; };
    _exit((refused(Conformance::export_to(server, "yours", service)) ? 0 : 1) +
          (refused(server.withdraw(*exported)) ? 0 : 2) +
          (refused(Conformance::serve_over(server, std::move(ends->first), service)) ? 0 : 4) +
          (server.statistics().bindings == 0 ? 0 : 8));
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(client->Null());
  EXPECT_TRUE(world.import("mine")->Null());
}

TEST(Termination, a_socket_that_is_served_over_is_in_no_program_that_the_server_executes) {
  lrpc::Server server;
  ConformanceService service(&server);
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  const int end = ends->first.get();
  ASSERT_EQ(fcntl(end, F_SETFD, 0), 0);  // clears close-on-exec, as dup2(2) does
  ASSERT_TRUE(Conformance::serve_over(server, std::move(ends->first), service));
  EXPECT_EQ(fcntl(end, F_GETFD), FD_CLOEXEC);
  EXPECT_TRUE(Conformance::Client::import_over(std::move(ends->second)));
}

TEST(Termination, a_call_over_its_timeout_is_aborted_and_its_astack_comes_back_later) {
  Gated service;
  lrpc::Server server;
  auto client = bind_privately(server, service, {.supply = lrpc::AStackSupply::fail, .call_timeout = 50ms});
  ASSERT_TRUE(client) << client.error().message();
  // The class has five A-stacks. After five aborted calls there is none, until the server returns one. A call that ends
  // before the server has taken it up gives its A-stack back at once.
  int aborted = 0;
  EXPECT_TRUE(eventually([&] {
    const Errc ended = client->SleepFor(0).code();
    EXPECT_TRUE(ended == Errc::call_aborted || ended == Errc::no_astack) << static_cast<int>(ended);
    aborted += ended == Errc::call_aborted;
    return service.inside_now() == 5;
  }));
  EXPECT_GE(aborted, 5);
  EXPECT_EQ(client->SleepFor(0).code(), Errc::no_astack);
  service.let_all_go();
  EXPECT_TRUE(eventually([&] { return client->SleepFor(0).has_value(); }));
}

TEST(Termination, waiting_for_an_astack_ends_with_the_call_timeout_too) {
  World world;
  const Process server = world.start_server({"slow"});
  auto client = world.import("slow", {.call_timeout = 50ms});
  ASSERT_TRUE(client) << client.error().message();
  // Only the timeout ends these calls.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(client->SleepFor(kForeverMs).code(), Errc::call_aborted) << i;
}

TEST(Termination, a_binding_ends_at_once_even_if_a_fork_child_holds_its_descriptors) {
  World world;
  const Process server = world.start_server({"arith"});
  auto observer = world.import("arith");
  ASSERT_TRUE(observer) << observer.error().message();
  pid_t child = -1;
  {
    auto client = world.import("arith");
    ASSERT_TRUE(client) << client.error().message();
    ASSERT_TRUE(client->Open(1));
    child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) pause();
    }
  }
  EXPECT_TRUE(eventually([&] { return observer->Statistics().value().bindings == 1; })) << "the child lives on";
  EXPECT_EQ(observer->LiveObjects().value(), 0U);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Termination, a_server_object_that_goes_ends_its_bindings_even_if_a_fork_child_holds_their_descriptors) {
  ConformanceService service;
  auto server = std::make_unique<lrpc::Server>();
  auto client = bind_privately(*server, service);
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(client->Null());
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  server.reset();
  const auto ended = client->Null().code();
  EXPECT_TRUE(ended == Errc::binding_revoked || ended == Errc::call_failed) << static_cast<int>(ended);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Termination, a_stopped_server_only_delays_its_callers) {
  World world;
  const Process server = world.start_server({"stopped"});
  auto client = world.import("stopped");
  ASSERT_TRUE(client && client->Null());
  server.send(SIGSTOP);
  std::thread later([&] {
    std::this_thread::sleep_for(150ms);
    server.send(SIGCONT);
  });
  EXPECT_EQ(client->Add(1, 1).value(), 2);
  later.join();
}

}  // namespace
}  // namespace testing_lrpc
