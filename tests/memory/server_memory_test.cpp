// A server without memory: a call or a binding ends, but the server lives on.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "chatter_service.h"
#include "eventually.h"
#include "faulty_process.h"
#include "holdings.h"
#include "lrpc/sealed.h"
#include "lrpc/server.h"
#include "world.h"

namespace {

using namespace std::chrono_literals;
using namespace testing_lrpc;

/// Makes a server do everything that a client can demand: all kinds of calls, on A-stacks that must be grown and
/// E-stacks that must be started; handles; abandoned calls; two bindings. Any of it may fail.
void call_everything(const World& world, lrpc::Gate gate) {
  auto client = world.import("memory", {.gate = gate, .supply = lrpc::AStackSupply::grow});
  EXPECT_NE(client.code(), lrpc::Errc::timed_out) << "the clerk has left the nameserver without an answer";
  if (!client) return;
  (void)client->Null();
  (void)client->Greet("you");
  std::array<std::byte, 3'000> bytes{};
  (void)client->Sum(bytes);
  (void)client->Throw();
  (void)client->Check(13);
  if (const auto counter = client->Open(1)) (void)client->Advance(*counter, 2);
  (void)client->OpenNote();
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 7; ++i) sleepers.emplace_back([&] { (void)client->SleepFor(1); });
  for (std::thread& sleeper : sleepers) sleeper.join();
  auto other = world.import("memory", {.gate = gate});
  if (other) {
    auto started = client->start().Add(1, 2);
    (void)other->Null();
    (void)started.finish();
  }
  const lrpc::CallScope brief(1ms);
  (void)client->SleepFor(3);
}

bool serves(const World& world) {
  // A clerk without memory for a message hangs up on the nameserver, and then connects again.
  return eventually([&] {
    auto client = world.import("memory");
    if (!client && client.code() == lrpc::Errc::name_unknown) return false;
    const auto sum = client ? client->Add(1, 2) : lrpc::Result<std::int32_t>(client.error());
    EXPECT_TRUE(sum) << sum.error().message();
    return true;
  });
}

class ServerWithoutMemory : public testing::TestWithParam<lrpc::Gate> {};

TEST_P(ServerWithoutMemory, ends_a_call_or_a_binding_and_lives) {
  const World world;
  FaultyProcess server({LRPC_TEST_SERVER, "--nameserver", world.nameserver(), "--estack-idle", "20", "memory"});
  const auto life = [&] { call_everything(world, GetParam()); };
  fail_each_and_leak_nothing(
      server, life, [&] { return serves(world); }, 12);
  if (long_tests() && GetParam() == lrpc::Gate::adaptive) fail_each_again_and_again(server, life);
}

INSTANTIATE_TEST_SUITE_P(EveryGate, ServerWithoutMemory,
                         testing::Values(lrpc::Gate::adaptive, lrpc::Gate::exchange, lrpc::Gate::handoff));

/// Runs a sealed program that makes a call of each kind over the trap gate. Returns whether all succeeded.
bool call_sealed(const World& world) {
  auto domain = lrpc::SealedDomain::start({LRPC_TEST_SEALED, "exchange", "memory"},
                                          {.name = "memory", .nameserver = world.nameserver()});
  EXPECT_NE(domain.code(), lrpc::Errc::timed_out) << "the clerk has left the nameserver without an answer";
  return domain && domain->wait() == 0;
}

TEST(ServerWithoutMemory, ends_a_sealed_clients_call_or_its_binding_and_lives) {
  const World world;
  FaultyProcess server({LRPC_TEST_SERVER, "--nameserver", world.nameserver(), "--estack-idle", "20", "memory"});
  {
    const auto first = lrpc::SealedDomain::start({LRPC_TEST_SEALED, "status", "0"},
                                                 {.name = "memory", .nameserver = world.nameserver()});
    if (first.code() == lrpc::Errc::not_supported) GTEST_SKIP() << first.error().message();
    ASSERT_TRUE(first) << first.error().message();
  }
  const auto life = [&] { (void)call_sealed(world); };
  const auto well = [&] { return eventually([&] { return call_sealed(world); }); };
  fail_each_and_leak_nothing(server, life, well, 12);
  if (long_tests()) fail_each_again_and_again(server, life);
}

/// A client that is called back in every way, over bindings that begin and end. Returns whether all succeeded.
/// `kBrieflyMs` bounds the server's waits.
bool be_called_back(const World& world) {
  constexpr std::uint32_t kBrieflyMs = 1'000;
  ChatterListener listener;
  lrpc::Server own;
  auto client = Chatter::Client::import("chatter", {.nameserver = world.nameserver()});
  EXPECT_NE(client.code(), lrpc::Errc::timed_out) << "the clerk has left the nameserver without an answer";
  if (!client || !client->serve_callbacks(own, listener)) return false;
  bool well = true;
  for (const std::size_t length : {std::size_t{1}, std::size_t{1'900}}) {
    const auto asked = client->Ask(std::string(length, '?'), kBrieflyMs, kBrieflyMs);
    well = asked && asked->code == 0 && well;
  }
  const auto refused = client->Ask("refuse", kBrieflyMs, kBrieflyMs);
  return refused.raised<Chatter::Refused>() != nullptr && well;
}

TEST(ServerWithoutMemory, ends_a_callback_or_its_binding_and_lives) {
  const World world;
  FaultyProcess server({LRPC_CALLING_SERVER, world.nameserver()});
  const auto life = [&] { (void)be_called_back(world); };
  const auto well = [&] { return eventually([&] { return be_called_back(world); }); };
  // The server is a client, too: work of ended bindings is kept for a second.
  fail_each_and_leak_nothing(server, life, well, 300);
}

TEST(ServerWithoutMemory, ends_a_private_binding_and_lives) {
  bool imported = false;
  bool hung_up = false;
  for (std::uint64_t first = 1; !imported && first < 1'000; ++first) {
    auto ends = lrpc::shim::make_socket_pair();
    ASSERT_TRUE(ends);
    FaultyProcess server({LRPC_TEST_SERVER, "--socket", std::to_string(ends->first.get())}, {ends->first.get()});
    ends->first.reset();
    server.fail(first, first);
    auto client = Conformance::Client::import_over(std::move(ends->second));
    imported = client && server.count() < first;
    hung_up = hung_up || client.code() == lrpc::Errc::peer_gone;
    server.recover();
    ASSERT_TRUE(server.alive()) << first;
    // The failed allocation may have been for an E-stack. Then this call, too, may end the binding.
    if (client) (void)client->Null();
    ASSERT_TRUE(server.alive()) << first;
  }
  EXPECT_TRUE(imported);
  EXPECT_TRUE(hung_up);
}

/// Raises the limit on descriptors, which is lower at first on many systems. False: it cannot be raised enough.
bool have_descriptors_for(std::size_t bindings) {
  const rlim_t wanted = 2 * bindings + 1'000;  // for the client and the server
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < wanted) return false;
  limit.rlim_cur = std::max(limit.rlim_cur, wanted);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

std::size_t threads_of(const FaultyProcess& process) {
  const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(process.pid()) + "/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

/// Makes a slow call over each client, all at once. Returns how many succeed.
std::size_t sleep_in_all(std::vector<Conformance::Client>& clients) {
  std::vector<decltype(clients.front().start().SleepFor(1))> sleeping;
  for (auto& client : clients) sleeping.push_back(client.start().SleepFor(1));
  return static_cast<std::size_t>(std::ranges::count_if(sleeping, [](auto& call) { return bool(call.finish()); }));
}

TEST(ServerWithoutMemory, lives_while_many_calls_sleep_and_many_bindings_end) {
  constexpr std::size_t kBindings = 2'000;
  constexpr std::size_t kMore = 20;  // bindings that the server must refuse
  constexpr std::size_t kSleepers = 8;
  if (!have_descriptors_for(kBindings + kMore)) GTEST_SKIP() << "too few descriptors can be had here";
  const World world;
  const std::string most = std::to_string(kBindings + kMore);
  FaultyProcess server({LRPC_TEST_SERVER, "--nameserver", world.nameserver(), "--max-bindings-per-client", most,
                        "--max-descriptors-per-user", std::to_string(2 * (kBindings + kMore)), "memory"});
  std::vector<Conformance::Client> clients;
  const auto bind = [&](std::size_t bindings) {
    while (clients.size() < bindings) {
      auto client = world.import("memory");
      ASSERT_TRUE(client) << client.error().message();
      clients.push_back(*std::move(client));
    }
  };
  ASSERT_NO_FATAL_FAILURE(bind(kSleepers));
  EXPECT_EQ(sleep_in_all(clients), kSleepers);  // starts the E-stacks that exist from now on
  ASSERT_NO_FATAL_FAILURE(bind(kBindings));

  // With this limit the kernel refuses memory for any new stack.
  rlimit before{};
  const rlimit none{1, RLIM_INFINITY};
  const std::size_t threads = threads_of(server);
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_DATA, &none, &before), 0);
  EXPECT_EQ(sleep_in_all(clients), kBindings);
  EXPECT_LE(threads_of(server), threads);

  // From here on all other allocations fail, too.
  server.fail(1, UINT64_MAX);
  EXPECT_EQ(sleep_in_all(clients), kBindings);
  EXPECT_GE(server.failed(), kBindings);
  for (std::size_t i = 0; i < kMore; ++i) EXPECT_FALSE(world.import("memory"));
  clients.clear();
  EXPECT_TRUE(eventually([&] { return Holdings::of(std::to_string(server.pid())).regions == 0; }));
  ASSERT_TRUE(server.alive());

  server.recover();
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_DATA, &before, nullptr), 0);
  EXPECT_TRUE(serves(world));
}

TEST(ServerWithoutMemory, says_of_a_call_that_an_exception_escaped) {
  const World world;
  FaultyProcess server({LRPC_TEST_SERVER, "--nameserver", world.nameserver(), "memory"});
  ASSERT_TRUE(serves(world));
  auto client = world.import("memory");
  ASSERT_TRUE(client && client->Null());
  const std::vector<std::byte> large(1 << 20);  // more than a thread keeps as a buffer for arguments
  server.fail(1, UINT64_MAX);
  EXPECT_EQ(client->Sum(large).code(), lrpc::Errc::exception_escaped);
  server.recover();
  EXPECT_TRUE(client->Sum(large));
}

TEST(ServerWithoutMemory, says_of_a_binding_that_a_limit_is_reached) {
  const World world;
  FaultyProcess server({LRPC_TEST_SERVER, "--nameserver", world.nameserver(), "memory"});
  ASSERT_TRUE(serves(world));
  bool refused = false;
  for (std::uint64_t first = 1; !refused && first < 200; ++first) {
    server.fail(first, first);
    refused = world.import("memory").code() == lrpc::Errc::limit_reached;
    server.recover();
    ASSERT_TRUE(serves(world)) << first;
  }
  EXPECT_TRUE(refused);
}

}  // namespace
