// More than two hosts: two Ethernets joined by a router, and four hosts on one.
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "wire_host.h"

namespace testing_wires {
namespace {

class Segments : public OnWires {};

TEST_P(Segments, JoinedByARouterAreReachedByIpWhileNeighboursAreReachedByEthernet) {
  const HostAddress client_address = address(1, 1);
  const HostAddress neighbour_address = address(1, 2);
  const HostAddress server_address = address(2, 1);
  Namespace client_place;
  Namespace neighbour_place;
  Namespace router;
  Namespace server_place;
  Bridge here;
  here.plug(client_place, "wire", text(client_address));
  here.plug(neighbour_place, "wire", text(neighbour_address));
  here.plug(router, "here", text(address(1, 254)));
  lrpc::netrpc::test::join(router, "there", text(address(2, 254)), server_place, "wire", text(server_address));
  router.forward();
  client_place.ip("route add default via 10.0.1.254");
  server_place.ip("route add default via 10.0.2.254");

  WireHost server(server_place, server_address, stack());
  WireHost neighbour(neighbour_place, neighbour_address, stack());
  WireHost client(client_place, client_address, stack());
  for (const HostAddress peer : {server_address, neighbour_address}) client.open(peer);
  call_until_over_ethernet(client, neighbour_address, {&neighbour});
  const std::uint64_t before = over_ip({&neighbour});
  for (const std::size_t size : kSizesOfCalls) {
    for (const HostAddress peer : {server_address, neighbour_address}) {
      const Answer answer = client.call(peer, size, size);
      EXPECT_EQ(answer.outcome, Errc::ok) << size << " bytes to " << text(peer);
      EXPECT_TRUE(answer.right) << size << " bytes to " << text(peer);
    }
  }
  EXPECT_GE(server.counted("ip").received, std::size(kSizesOfCalls));
  EXPECT_EQ(server.counted("eth").received, 0U);
  EXPECT_EQ(server.counted("eth").sent, 0U);
  EXPECT_GE(neighbour.counted("eth").received, std::size(kSizesOfCalls));
  EXPECT_EQ(over_ip({&neighbour}), before);
}

TEST_P(Segments, OfFourHostsCarryTheCallsOfEachToEachFromSeveralThreads) {
  constexpr int kHosts = 4;
  constexpr int kThreads = 3;
  constexpr int kCalls = 60;
  Bridge bridge;
  std::vector<std::unique_ptr<Namespace>> places;
  std::vector<std::unique_ptr<WireHost>> hosts;
  for (int i = 0; i < kHosts; ++i) {
    places.push_back(std::make_unique<Namespace>());
    bridge.plug(*places.back(), "wire", text(address(0, i + 1)));
  }
  for (int i = 0; i < kHosts; ++i)
    hosts.push_back(std::make_unique<WireHost>(*places[static_cast<std::size_t>(i)], address(0, i + 1), stack()));
  for (int from = 0; from < kHosts; ++from)
    for (int to = 0; to < kHosts; ++to)
      if (to != from) hosts[static_cast<std::size_t>(from)]->open(address(0, to + 1));

  std::mutex mutex;
  std::map<std::string, int> wrong;  // how often
  std::vector<std::thread> threads;
  for (int from = 0; from < kHosts; ++from) {
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, from, thread] {
        for (int i = 0; i < kCalls; ++i) {
          const int to = (from + 1 + (i + thread) % (kHosts - 1)) % kHosts;
          const auto number =
              static_cast<std::uint64_t>(from * kThreads + thread) * kCalls + static_cast<std::uint64_t>(i);
          const Answer answer =
              hosts[static_cast<std::size_t>(from)]->call(address(0, to + 1), kSizesOfCalls[i % 3], number);
          if (answer.right) continue;
          const std::lock_guard lock(mutex);
          ++wrong[text(address(0, from + 1)) + " to " + text(address(0, to + 1)) + ", " +
                  std::to_string(kSizesOfCalls[i % 3]) + " bytes: " + std::string(lrpc::describe(answer.outcome))];
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::map<std::string, int>()));
}

INSTANTIATE_TEST_SUITE_P(Stacks, Segments, ::testing::Values(&kLayered, &kSizes, &kMonolithic), name_of);

}  // namespace
}  // namespace testing_wires
