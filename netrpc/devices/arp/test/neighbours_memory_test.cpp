// Neighbours, when there is no memory for the kernel's answers.
#include <gtest/gtest.h>

#include <memory>

#include "netrpc/devices/arp/neighbours.h"
#include "netrpc/devices/device/test/device_addresses.h"
#include "netrpc/sim/test/counted_allocations.h"
#include "netrpc/test_support/real_host.h"

namespace lrpc::netrpc::test {
namespace {

constexpr EthernetAddress kEthernetOfB{{2, 0, 0, 0, 0, 2}};

/// Denies or restores memory in the thread that asks the kernel.
void deny_memory_to(RealHost& host, Asker& asker, bool denied) {
  host.inside([&] {
    ASSERT_TRUE(asker.ask([denied](rtnetlink::Requests&) {
      deny_memory(denied);
      return Asker::Answer();
    }));
  });
}

TEST(NeighboursWithoutMemory, are_asked_for_again_when_there_is_some) {
  if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
  const JoinedPair pair;
  pair.left.ip("neigh replace 10.0.0.2 dev left nud permanent lladdr 02:00:00:00:00:02");
  RealHost host(pair.left, EngineKind::automatic, "host");
  std::unique_ptr<Asker> asker;
  std::unique_ptr<Neighbours> neighbours;
  host.inside([&] {
    const int index = find_interface("left").value().index;
    asker = std::move(Asker::make(*host, host.engine())).value();
    neighbours = std::move(Neighbours::make(*host, host.engine(), *asker, index)).value();
    neighbours->use_interface(index);  // forgets all entries
  });
  const auto known = [&] {
    HostAddress found;
    return neighbours->resolve_reverse(kEthernetOfB, found) == Errc::ok && found == kB;
  };
  deny_memory_to(host, *asker, true);
  host.inside([&] { EXPECT_FALSE(known()); });  // makes it ask the kernel for all entries
  deny_memory_to(host, *asker, false);
  EXPECT_TRUE(host.becomes(known));
  host.inside([&] {
    neighbours.reset();
    asker.reset();
  });
}

}  // namespace
}  // namespace lrpc::netrpc::test
