// In the steady state a Sun RPC call over TCP allocates nothing at either end: no record, no message, no session.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "lrpc/netrpc/all_kinds.h"
#include "lrpc/netrpc/blocking_call.h"
#include "netrpc/sim/test/counted_allocations.h"
#include "netrpc/test_support/real_host.h"

namespace lrpc::netrpc::test {
namespace {

constexpr std::uint32_t kProgram = 0x20000099;
constexpr std::uint16_t kPort = 4712;

class Echo final : public Protocol {
 public:
  explicit Echo(Host& host) : Protocol(host, "echo") {}
  void call_demux(Session& lower, Message request) noexcept override { lower.reply(std::move(request)); }
};

/// A host with Sun RPC over TCP.
struct SunHost {
  SunHost(const Namespace& where, const std::string& tcp) : host(where, EngineKind::epoll, "host") {
    host.inside([&] {
      echo = &host.keep(std::make_unique<Echo>(*host));
      const ProtocolKinds kinds = all_kinds();
      const auto parsed = GraphDescription::parse(tcp +
                                                      "pairs = REQUEST_REPLY over tcp; call = SUN_CALL over pairs;"
                                                      "auth = AUTH_NONE over call; sun = SUN_SELECT over auth;",
                                                  kinds);
      ASSERT_TRUE(parsed) << parsed.error().message();
      auto made = Graph::compose(*host, *parsed, kinds);
      ASSERT_TRUE(made) << made.error().message();
      graph.emplace(std::move(*made));
    });
  }
  ~SunHost() {
    host.engine().stop();
    host.inside([&] { graph.reset(); });
  }
  RealHost host;
  Echo* echo = nullptr;
  std::optional<Graph> graph;
};

/// Calls with `bytes` of arguments and of results. A thread of the engine may make its first allocations late, when it
/// leads for the first time: then a further round must have none.
void expect_no_allocations(std::size_t bytes) {
  if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
  const Namespace where;
  SunHost server(where, "tcp = TCP(port = 4712);");
  ParticipantSet served;
  served.local.program = kProgram;
  served.local.version = 1;
  server.host.inside([&] { ASSERT_TRUE(server.graph->find("sun")->open_enable(*server.echo, served)); });
  server.host.start(2);
  SunHost client(where, "tcp = TCP;");
  client.host.start(1);
  ParticipantSet to;
  to.remote.host = {0x7f000001};
  to.remote.port = kPort;
  to.remote.program = kProgram;
  to.remote.version = 1;
  to.remote.procedure = 1;
  const std::vector<std::byte> arguments(bytes);
  SessionRef session;
  client.host.inside([&] { session = *client.graph->find("sun")->open(*client.echo, to); });
  const auto call = [&] {
    Message reply;
    const Errc outcome =
        call_and_wait_inside(*session, Message::copy_of_long(client.host->pool(), arguments), reply, kNoLimit);
    return outcome == Errc::ok && reply.size() == bytes;
  };
  std::uint64_t fewest = ~std::uint64_t{0};
  bool right = true;
  client.host.inside([&] {
    for (int round = 0; round < 20 && fewest != 0 && right; ++round) {
      const std::uint64_t before = allocations_so_far();
      for (int i = 0; i < 300 && right; ++i) right = call();
      fewest = std::min(fewest, allocations_so_far() - before);
    }
  });
  EXPECT_TRUE(right);
  EXPECT_EQ(fewest, 0U) << "in 300 calls of " << bytes << " bytes";
  client.host.inside([&] { session = {}; });
}

TEST(TcpAllocations, there_are_none_in_the_steady_state_of_small_calls) { expect_no_allocations(16); }
TEST(TcpAllocations, there_are_none_in_the_steady_state_of_calls_in_several_buffers) { expect_no_allocations(60'000); }

}  // namespace
}  // namespace lrpc::netrpc::test
