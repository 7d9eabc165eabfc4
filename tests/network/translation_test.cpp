// Clients behind a host that translates addresses, and which is itself behind another router. The server sees all of
// them as ports of one host, the translator.
#include <stdexcept>
#include <thread>

#include "lrpc/netrpc/address.h"
#include "wire_host.h"

namespace testing_wires {
namespace {

const Stack kPaired{"Paired", "", "paired = PAIRED(max_retry = 100) over wire; top = SELECT over paired;"};
const Stack kSunRpc{"SunRpc", "",
                    "pairs = REQUEST_REPLY(give_up = 240s) over wire; call = SUN_CALL over pairs;"
                    "auth = AUTH_NONE over call; top = SUN_SELECT(program = 9) over auth;"};

class BehindATranslation : public OnWires {};

TEST_P(BehindATranslation, ProgramsOfSeveralHostsCallAServerThatCannotReachThem) {
  const HostAddress server_address = address(3, 1);
  Namespace places[2];
  Namespace translator;
  Namespace router;
  Namespace server_place;
  Bridge here;
  for (int i = 0; i < 2; ++i) here.plug(places[i], "wire", text(address(1, 1 + i)));
  here.plug(translator, "here", text(address(1, 254)));
  lrpc::netrpc::test::join(translator, "out", text(address(2, 1)), router, "in", text(address(2, 254)));
  lrpc::netrpc::test::join(router, "there", text(address(3, 254)), server_place, "wire", text(server_address));
  translator.forward();
  router.forward();
  for (const Namespace& place : places) place.ip("route add default via 10.0.1.254");
  translator.ip("route add default via 10.0.2.254");
  server_place.ip("route add 10.0.2.0/24 via 10.0.3.254");  // and no route to the clients
  try {
    translator.nft("add table ip translation");
    translator.nft("add chain ip translation out { type nat hook postrouting priority 100 ; }");
    translator.nft("add rule ip translation out oifname out masquerade");
  } catch (const std::runtime_error& why) {
    GTEST_SKIP() << "no address translation here: " << why.what();
  }

  const Stack serving{stack().name, "wire = UDP(peer_ports = any);", stack().upper};
  const Stack calling{stack().name, "wire = UDP(local_ports = 0);", stack().upper};
  WireHost server(server_place, server_address, serving);
  std::vector<std::unique_ptr<WireHost>> clients;  // two programs on each host
  for (int i = 0; i < 4; ++i)
    clients.push_back(std::make_unique<WireHost>(places[i / 2], address(1, 1 + i / 2), calling));
  std::vector<std::thread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&server_address, &client = *client] {
      client.open(server_address);
      for (std::uint64_t i = 0; i < 20; ++i) {
        for (const std::size_t size : kSizesOfCalls) {
          const Answer answer = client.call(server_address, size, i);
          EXPECT_EQ(answer.outcome, Errc::ok) << size;
          EXPECT_TRUE(answer.right) << size;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server.calling_ports(), clients.size());
}

INSTANTIATE_TEST_SUITE_P(Stacks, BehindATranslation, testing::Values(&kPaired, &kSunRpc), name_of);

}  // namespace
}  // namespace testing_wires
