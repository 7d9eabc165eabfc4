// A client for which there is no memory: a call or a binding ends, never the client.
#include <gtest/gtest.h>

#include "chatter_service.h"
#include "eventually.h"
#include "faulty_process.h"
#include "lrpc/server.h"
#include "world.h"

namespace {

using namespace testing_lrpc;

TEST(ClientWithoutMemory, ends_a_call_or_a_binding_and_lives) {
  const World world;
  const Process server = world.start_server({"memory"});
  ChatterService service;
  lrpc::Server own({.nameserver = world.nameserver()});
  ASSERT_TRUE(Chatter::export_to(own, "chatter", service));
  FaultyProcess client({LRPC_RESTLESS_CLIENT, world.nameserver()});
  ASSERT_TRUE(eventually([&] { return client.good() >= 200; }));  // as much waits for its time as ever will
  const auto life = [&] {
    const std::uint64_t before = client.lives();
    (void)eventually([&] { return client.lives() >= before + 2 || !client.alive(); });  // a whole one
  };
  const auto well = [&] {
    const std::uint64_t before = client.good();
    return eventually([&] { return client.good() >= before + 2 || !client.alive(); }) && client.alive();
  };
  fail_each_and_leak_nothing(client, life, well, 300);  // work of bindings that are gone waits for its second
}

}  // namespace
