// Links that change under a running lrpc-netd, which is in its sandbox: it follows them, and its bindings stay.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "two_machines.h"

namespace lrpc::netd::test {
namespace {

struct Over {
  const char* name;
  std::string graph;
  std::vector<std::string> options;
};

class ChangingLinks : public TwoMachines, public ::testing::WithParamInterface<Over> {
 protected:
  void SetUp() override {
    TwoMachines::SetUp();
    if (IsSkipped()) return;
    share_key();
    server_ = start_server();
    // A message that a change has cost is sent again, so that no load of the machine makes a call fail.
    for (Machine* const machine : {there.get(), here.get()}) {
      std::vector<std::string> more = GetParam().options;
      more.insert(more.end(), {"--export", "conformance"});
      machine->start_with_give_up("25s", GetParam().graph + " --keys " + machine->file("keys"), more);
    }
    auto imported = import();
    ASSERT_TRUE(imported) << imported.error().message();
    client_.emplace(*std::move(imported));
    expect_calls_of_all_sizes("before anything has changed");
  }
  /// Calls of one packet, of the longest packet and of many, over the binding that there is from the beginning.
  void expect_calls_of_all_sizes(const char* when) {
    for (const std::size_t size : {1U, 500U, 1150U, 1380U, 12'000U}) {
      const std::vector<std::byte> bytes(size, std::byte{3});
      const auto sum = client_->Sum(bytes);
      ASSERT_TRUE(sum) << size << " bytes " << when << ": " << sum.error().message();
      EXPECT_EQ(*sum, 3 * size) << when;
    }
  }
  void both(const std::string& ip_words) const {
    here->where().ip(ip_words);
    there->where().ip(ip_words);
  }
  void join_again(const std::string& name = "veth0") const {
    netrpc::test::join(here->where(), name, "10.7.0.1/24", there->where(), name, "10.7.0.2/24");
  }

  Process server_;
  std::optional<Conformance::Client> client_;
};

TEST_P(ChangingLinks, calls_go_on_when_the_mtu_is_lowered_and_raised_again) {
  both("link set veth0 mtu 1200");
  expect_calls_of_all_sizes("with an MTU of 1200");
  both("link set veth0 mtu 1000");
  expect_calls_of_all_sizes("with an MTU of 1000");
  both("link set veth0 mtu 1500");
  expect_calls_of_all_sizes("with an MTU of 1500 again");
}

TEST_P(ChangingLinks, calls_go_on_when_the_link_is_taken_down_and_up) {
  for (Machine* const machine : {here.get(), there.get()}) {
    machine->where().ip("link set veth0 down");
    std::jthread caller([&] { expect_calls_of_all_sizes("made while the link was down"); });
    machine->where().ip("link set veth0 up");
    caller.join();
    expect_calls_of_all_sizes("after it had been down");
  }
}

TEST_P(ChangingLinks, calls_go_on_when_the_link_is_renamed) {
  both("link set veth0 down");
  both("link set veth0 name lan0");
  both("link set lan0 up");
  expect_calls_of_all_sizes("under another name");
  both("link set lan0 mtu 1200");
  expect_calls_of_all_sizes("under another name with another MTU");
  here->where().ip("link delete lan0");
  join_again("lan0");
  expect_calls_of_all_sizes("over a link made again under the new name");
}

TEST_P(ChangingLinks, calls_go_on_when_the_link_is_removed_and_made_again) {
  for (int i = 0; i < 2; ++i) {
    here->where().ip("link delete veth0");
    std::jthread caller([&] { expect_calls_of_all_sizes("made while there was no link"); });
    join_again();
    caller.join();
    expect_calls_of_all_sizes("over the link that was made again");
  }
  both("link set veth0 mtu 1200");
  expect_calls_of_all_sizes("over the link that was made again, with another MTU");
}

TEST_P(ChangingLinks, calls_go_on_when_the_address_is_taken_away_and_given_back) {
  here->where().ip("address del 10.7.0.1/24 dev veth0");
  here->where().ip("address add 10.7.0.9/24 dev veth0");
  std::jthread caller([&] { expect_calls_of_all_sizes("made while the address was away"); });
  here->where().ip("address del 10.7.0.9/24 dev veth0");
  here->where().ip("address add 10.7.0.1/24 dev veth0");
  caller.join();
  expect_calls_of_all_sizes("with the address again");
}

INSTANTIATE_TEST_SUITE_P(Over, ChangingLinks,
                         ::testing::Values(Over{"Ethernet", "", {}}, Over{"Udp", "--udp", {}},
                                           Over{"EthernetWithoutIoUring", "", {"--backend", "epoll"}}),
                         [](const auto& over) { return over.param.name; });

TEST_F(TwoMachines, a_binding_ends_with_its_link_and_a_new_one_is_made_over_the_next_link) {
  share_key();
  const Process server = start_server();
  there->start_with_keys({"--export", "conformance"});
  here->start_impatient_with_keys();
  Result<Conformance::Client> client = Errc::name_unknown;
  ASSERT_TRUE(eventually([&] { return (client = import()) && client->Null(); })) << client.error().message();
  here->where().ip("link delete veth0");
  EXPECT_FALSE(client->Null()) << "it does not wait for ever";
  netrpc::test::join(here->where(), "veth0", "10.7.0.1/24", there->where(), "veth0", "10.7.0.2/24");
  EXPECT_TRUE(eventually([&] {
    auto again = import();
    return again && again->Null();
  }));
}

TEST_F(TwoMachines, a_call_that_has_become_too_long_for_the_link_is_refused_and_its_binding_stays) {
  share_key();
  const Process server = start_server();
  there->start_with_keys({"--export", "conformance"});
  here->start_with_keys();
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  here->where().ip("link set veth0 mtu 600");
  there->where().ip("link set veth0 mtu 600");
  const std::vector<std::byte> large(12'000, std::byte{3});
  ASSERT_TRUE(eventually([&] { return client->Sum(large).code() == Errc::limit_reached; })) << "once netd has heard";
  EXPECT_EQ(client->Sum(std::vector<std::byte>(5000, std::byte{3})).value(), 15'000U);
}

TEST_F(TwoMachines, netd_says_what_has_become_of_its_link_and_its_address) {
  here->start_netd({"--insecure"});
  here->where().ip("link set veth0 mtu 1200");
  EXPECT_TRUE(eventually([&] { return here->has_logged("link veth0 carries 1200 bytes a frame"); }));
  here->where().ip("address del 10.7.0.1/24 dev veth0");
  EXPECT_TRUE(eventually([&] { return here->has_logged("10.7.0.1 is no address of this machine any more"); }));
  here->where().ip("link delete veth0");
  EXPECT_TRUE(eventually([&] { return here->has_logged("link veth0 is gone"); }));
  netrpc::test::join(here->where(), "veth0", "10.7.0.1/24", there->where(), "veth0", "10.7.0.2/24");
  EXPECT_TRUE(eventually([&] { return here->has_logged("link veth0 is there again"); }));
  EXPECT_TRUE(eventually([&] { return here->has_logged("10.7.0.1 is an address of this machine again"); }));
}

}  // namespace
}  // namespace lrpc::netd::test
