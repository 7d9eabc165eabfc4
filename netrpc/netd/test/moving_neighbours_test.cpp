// Machines that share one address, and machines whose Ethernet address changes.
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "two_machines.h"

namespace lrpc::netd::test {
namespace {

/// Machines on one Ethernet.
class OnOneEthernet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = netrpc::test::why_no_namespaces()) GTEST_SKIP() << *why;
    if (const auto why = netrpc::test::why_no_bridges()) GTEST_SKIP() << *why;
    ethernet_.emplace();
  }
  std::unique_ptr<Machine> plug(const std::string& address) {
    auto machine = std::make_unique<Machine>(address);
    ethernet_->plug(machine->where(), "veth0", address + "/24");
    return machine;
  }

 private:
  std::optional<netrpc::test::Bridge> ethernet_;
};

constexpr const char* kTwice = "10.7.0.1 is the address of another machine, too";

TEST_F(OnOneEthernet, two_machines_with_one_address_both_say_so) {
  const auto first = plug("10.7.0.1");
  const auto second = plug("10.7.0.1");
  for (Machine* const machine : {first.get(), second.get()}) {
    machine->start_netd({"--insecure"});
  }
  for (Machine* const machine : {first.get(), second.get()})
    EXPECT_TRUE(eventually([&] { return machine->has_logged(kTwice); }));
}

TEST_F(OnOneEthernet, two_machines_with_one_address_both_say_so_over_udp) {
  const auto first = plug("10.7.0.1");
  const auto second = plug("10.7.0.1");
  first->start_netd({"--insecure", "--udp"});
  second->start_netd({"--insecure", "--udp", "--address", "10.7.0.1"});
  for (Machine* const machine : {first.get(), second.get()})
    EXPECT_TRUE(eventually([&] { return machine->has_logged(kTwice); }));
}

TEST_F(OnOneEthernet, a_machine_over_udp_without_the_right_to_send_arp_packets_starts_all_the_same) {
  const auto first = plug("10.7.0.1");
  const auto second = plug("10.7.0.2");
  const Process server = second->start({LRPC_TEST_SERVER, "--nameserver", second->socket(), "conformance"});
  second->start_netd({"--insecure", "--udp", "--export", "conformance"});
  const auto unprivileged =
      first->start({"/bin/sh", "-c",
                    "exec setpriv --bounding-set -all --inh-caps -all " LRPC_NETD " --insecure --udp --nameserver " +
                        first->socket()});
  auto client =
      patiently([&] { return Conformance::Client::import("conformance@10.7.0.2", {.nameserver = first->socket()}); });
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE(client->Null());
}

TEST_F(OnOneEthernet, a_machine_whose_address_another_one_takes_later_says_so) {
  const auto machine = plug("10.7.0.1");
  const auto other = plug("10.7.0.2");
  machine->start_netd({"--insecure"});
  other->start_netd({"--insecure"});
  other->where().ip("address del 10.7.0.2/24 dev veth0");
  other->where().ip("address add 10.7.0.1/24 dev veth0");
  // The first packet that the other machine's kernel sends to a host on the link announces its Ethernet address.
  EXPECT_TRUE(eventually([&] {
    other->in([] { (void)run("bash -c 'echo > /dev/udp/10.7.0.3/9'"); });
    return machine->has_logged(kTwice);
  }));
  EXPECT_FALSE(other->has_logged(kTwice)) << "it is 10.7.0.2, whoever has that";
}

TEST_F(OnOneEthernet, machines_with_addresses_of_their_own_say_nothing) {
  const auto first = plug("10.7.0.1");
  const auto second = plug("10.7.0.2");
  for (Machine* const machine : {first.get(), second.get()}) {
    machine->start_netd({"--insecure", "--export", "conformance"});
  }
  const Process server = second->start({LRPC_TEST_SERVER, "--nameserver", second->socket(), "conformance"});
  auto client =
      patiently([&] { return Conformance::Client::import("conformance@10.7.0.2", {.nameserver = first->socket()}); });
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_TRUE(client->Null());
  for (Machine* const machine : {first.get(), second.get()}) EXPECT_FALSE(machine->has_logged("too, which has"));
}

class MovingNeighbour : public TwoMachines {
 protected:
  void start(const std::vector<std::pair<std::string, std::string>>& changes = {}, bool meet = false) {
    share_key();
    server_ = start_server();
    std::vector<std::pair<std::string, std::string>> all{{"give_up = 30s", "give_up = 25s"}};
    all.insert(all.end(), changes.begin(), changes.end());
    for (Machine* const machine : {there.get(), here.get()})
      machine->start_changed("--keys " + machine->file("keys"), all, {"--export", "conformance"});
    if (meet) {
      // Each kernel knows the other machine's Ethernet address, and each lrpc-netd has heard the other one. So the
      // first message goes over the Ethernet.
      here->in([] { (void)run("bash -c 'echo > /dev/udp/10.7.0.2/9'"); });
      there->in([] { (void)run("bash -c 'echo > /dev/udp/10.7.0.1/9'"); });
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    auto imported = import_patiently();
    ASSERT_TRUE(imported) << imported.error().message();
    client_.emplace(*std::move(imported));
    expect_calls("before");
  }
  void expect_calls(const char* when) {
    for (const std::size_t size : {1U, 1300U, 12'000U}) {
      const auto sum = client_->Sum(std::vector<std::byte>(size, std::byte{3}));
      ASSERT_TRUE(sum) << size << " bytes " << when << ": " << sum.error().message();
      EXPECT_EQ(*sum, 3 * size) << when;
    }
  }
  /// From now on the client's machine learns only the Ethernet addresses that it has asked for.
  void drop_requests_of_arp() const {
    here->where().nft("add table netdev deaf");
    here->where().nft("add chain netdev deaf in { type filter hook ingress device veth0 priority 0 ; }");
    here->where().nft("add rule netdev deaf in arp operation request drop");
  }

  Process server_;
  std::optional<Conformance::Client> client_;
};

TEST_F(MovingNeighbour, calls_go_on_when_the_servers_ethernet_address_changes) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (const char* const address : {"02:00:00:00:00:77", "02:00:00:00:00:78"}) {
    there->where().ip(std::string("link set veth0 address ") + address);
    expect_calls(address);
  }
}

TEST_F(MovingNeighbour, calls_go_on_when_the_clients_ethernet_address_changes) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (const char* const address : {"02:00:00:00:00:77", "02:00:00:00:00:78"}) {
    here->where().ip(std::string("link set veth0 address ") + address);
    expect_calls(address);
  }
}

TEST_F(MovingNeighbour, calls_go_on_when_the_moved_client_has_advertised_itself_from_its_new_ethernet_address) {
  ASSERT_NO_FATAL_FAILURE(start({{"VIPHOSTS", "VIPHOSTS(lifetime = 300ms)"}}, true));
  here->where().ip("link set veth0 address 02:00:00:00:00:77");
  // This lasts for several lifetimes of the entries. In each of them the client's host advertises itself three times.
  for (int i = 0; i < 100; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_calls("after the client's Ethernet address has changed"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST_F(MovingNeighbour, calls_go_on_when_nobody_says_that_the_servers_ethernet_address_has_changed) {
  if (const auto why = netrpc::test::why_no_nftables()) GTEST_SKIP() << *why;
  ASSERT_NO_FATAL_FAILURE(start());
  drop_requests_of_arp();
  there->where().ip("link set veth0 address 02:00:00:00:00:77");
  expect_calls("after the server's Ethernet address has changed unheard");
}

}  // namespace
}  // namespace lrpc::netd::test
