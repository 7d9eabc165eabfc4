// A client without memory: a call or a binding ends, but the client lives on.
#include <gtest/gtest.h>

#include "chatter_service.h"
#include "eventually.h"
#include "faulty_process.h"
#include "lrpc/sealed.h"
#include "lrpc/server.h"
#include "world.h"

namespace {

using namespace testing_lrpc;

/// Lets one allocation of a restless client fail after another.
void fail_each_of(FaultyProcess& client, std::uint64_t good_before, std::int64_t kept, std::uint64_t sites) {
  const auto life = [&] { client.live_once(); };
  const auto well = [&] {
    const std::uint64_t before = client.good();
    return eventually([&] { return client.live_once(), client.good() > before || !client.alive(); }) && client.alive();
  };
  for (std::uint64_t i = 0; i < good_before; ++i) ASSERT_TRUE(well());
  fail_each_and_leak_nothing(client, life, well, kept, sites);
}

TEST(ClientWithoutMemory, ends_a_call_or_a_binding_and_lives) {
  const World world;
  const Process server = world.start_server({"memory"});
  ChatterService service;
  lrpc::Server own({.nameserver = world.nameserver()});
  ASSERT_TRUE(Chatter::export_to(own, "chatter", service));
  FaultyProcess client({LRPC_RESTLESS_CLIENT, world.nameserver()});
  fail_each_of(client, 200, 300, 60);  // work of ended bindings is kept for a second
}

lrpc::Status sealed_program_starts(const World& world) {
  const auto started = lrpc::SealedDomain::start({LRPC_TEST_SEALED, "status", "0"},
                                                 {.name = "memory", .nameserver = world.nameserver()});
  return started ? lrpc::Status() : lrpc::Status(started.error());
}

TEST(ClientWithoutMemory, starts_no_sealed_program_and_lives) {
  const World world;
  const Process server = world.start_server({"memory"});
  const auto starts = sealed_program_starts(world);
  if (starts.code() == lrpc::Errc::not_supported) GTEST_SKIP() << starts.error().message();
  ASSERT_TRUE(starts) << starts.error().message();
  FaultyProcess client({LRPC_RESTLESS_CLIENT, world.nameserver(), LRPC_TEST_SEALED});
  client.fail_only_in("lrpc-sealed");  // not in the main thread: libseccomp, which it calls, corrupts the heap
  fail_each_of(client, 3, 12, 15);
}

TEST(ClientWithoutMemory, that_may_not_trace_a_sealed_program_starts_none_and_lives) {
  const World world;
  const Process server = world.start_server({"memory"});
  const auto starts = sealed_program_starts(world);
  if (starts.code() == lrpc::Errc::not_supported) GTEST_SKIP() << starts.error().message();
  ASSERT_TRUE(starts) << starts.error().message();
  FaultyProcess client({LRPC_RESTLESS_CLIENT, world.nameserver(), LRPC_TEST_SEALED, "untraced"});
  client.fail_only_in("lrpc-sealed");  // as above
  fail_each_of(client, 3, 12, 1'000);  // all: only one of them is for the error
}

}  // namespace
