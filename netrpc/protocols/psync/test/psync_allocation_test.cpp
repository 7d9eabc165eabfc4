// In the steady state PSYNC allocates nothing for a message.
#include <gtest/gtest.h>

#include "netrpc/protocols/psync/protocol.h"
#include "netrpc/sim/test/counted_allocations.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc::psync {
namespace {

using namespace std::chrono_literals;

class Counter final : public Protocol {
 public:
  explicit Counter(Host& host) : Protocol(host, "counter") {}
  void demux(Session& /*lower*/, Message /*message*/) noexcept override { ++received; }
  int received = 0;
};

TEST(PsyncAllocations, there_are_none_in_the_steady_state) {
  SimHosts net(3);
  constexpr HostAddress kGroup{0xef000001};
  Counter* counters[3];
  SessionRef sessions[3];
  for (std::size_t i = 0; i < 3; ++i) {
    auto& psync = net[i].add<Psync>("psync", net[i].ip(), PsyncOptions{});
    counters[i] = &net[i].add<Counter>();
    const Shepherd inside(net[i].monitor());
    ASSERT_TRUE(psync.start());
    ASSERT_TRUE(net[i].host().groups().set(kGroup, {net.address(0), net.address(1), net.address(2)}));
    ParticipantSet participants = SimHosts::anyone();
    participants.remote.host = kGroup;
    sessions[i] = *psync.open(*counters[i], participants);
  }
  const auto talk = [&](std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i) {
      {
        const Shepherd inside(net[i % 3].monitor());
        EXPECT_EQ(sessions[i % 3]->push(net.message(i % 3, "x")), Errc::ok);
      }
      net.world.run_for(1ms);
    }
  };
  talk(900);
  const std::uint64_t before = allocations_so_far();
  talk(900);
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_EQ(counters[0]->received, 1200);
  for (SessionRef& one : sessions) one = {};
}

}  // namespace
}  // namespace lrpc::netrpc::psync
