// Links and routes that change under a running, sandboxed lrpc-netd: it follows the changes, and its bindings survive.
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance_service.h"
#include "lrpc/server.h"
#include "two_machines.h"

namespace lrpc::netd::test {
namespace {

/// A service whose Sum and Fill can be held: each stays in its procedure until let_go().
class HeldSums : public testing_lrpc::ConformanceService {
 public:
  std::uint64_t Sum(CallContext& call, std::span<const std::byte> data) {
    stay();
    return ConformanceService::Sum(call, data);
  }
  void Fill(CallContext& call, std::uint32_t count, std::uint8_t value, Buffer& data) {
    stay();
    ConformanceService::Fill(call, count, value, data);
  }
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  std::size_t inside() {
    const std::lock_guard lock(mutex_);
    return inside_;
  }

 private:
  void stay() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.wait(lock, [this] { return !held_; });
    --inside_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  std::size_t inside_ = 0;
};

/// A client on `here` bound to a server on `there`, while links or routes between them change.
class Changing : public TwoMachines {
 protected:
  using Call = decltype(std::declval<Conformance::Client&>().start().Sum({}));

  void begin(const std::string& graph, const std::vector<std::string>& options) {
    share_key();
    ASSERT_TRUE(
        Conformance::export_to(server_.emplace(ServerOptions{.nameserver = there->socket()}), "conformance", sums_));
    // A message that is lost because of a change is retransmitted for 25 s, so that no call fails on a busy machine.
    for (Machine* const machine : {there.get(), here.get()}) {
      std::vector<std::string> more = options;
      more.insert(more.end(), {"--export", "conformance", "--state", machine->file("state")});
      machine->start_with_give_up("25s", graph + " --keys " + machine->file("keys"), more);
    }
    Result<Conformance::Client> imported = Errc::name_unknown;
    ASSERT_TRUE(eventually([&] { return (imported = import()).has_value(); })) << imported.error().message();
    client_.emplace(*std::move(imported));
    expect_calls_of_all_sizes("before anything has changed");
  }
  /// Calls of one packet, of the longest packet and of many packets, over the first binding.
  void expect_calls_of_all_sizes(const char* when) {
    for (const std::size_t size : kSizes) expect_end(client_->start().Sum(bytes(size)), size, when);
  }
  /// Makes `change` while such calls are in their procedures, so that their replies find the new links and routes.
  template <class Change>
  void expect_calls_through(Change&& change, const char* when) {
    sums_.hold();
    std::vector<Call> calls;
    for (const std::size_t size : kSizes) calls.push_back(client_->start().Sum(bytes(size)));
    EXPECT_TRUE(eventually([&] { return sums_.inside() == kSizes.size(); }));
    change();
    sums_.let_go();
    expect_ends(std::move(calls), when);
    expect_calls_of_all_sizes(when);
  }
  /// Starts the same calls at the same time. When it returns, lrpc-netd has taken all of them.
  std::vector<Call> start_calls_of_all_sizes() {
    const std::uint64_t before = calls_taken();
    std::vector<Call> calls;
    for (const std::size_t size : kSizes) calls.push_back(client_->start().Sum(bytes(size)));
    EXPECT_TRUE(eventually([&] { return calls_taken() >= before + kSizes.size(); }));
    return calls;
  }
  /// Calls that cannot end before the next change.
  std::vector<Call> calls_under_way() {
    std::vector<Call> calls = start_calls_of_all_sizes();
    for (const Call& call : calls) EXPECT_FALSE(call.ready());
    return calls;
  }
  void expect_ends(std::vector<Call> calls, const char* when) {
    for (std::size_t i = 0; i < calls.size(); ++i) expect_end(std::move(calls[i]), kSizes[i], when);
  }
  void both(const std::string& ip_words) const {
    here->where().ip(ip_words);
    there->where().ip(ip_words);
  }
  /// Waits until both hosts know the new MTU: a call before that would be cut into fragments that no link carries.
  void shrink_link() const {
    both("link set veth0 mtu 600");
    for (const Machine* const machine : {here.get(), there.get()})
      ASSERT_TRUE(eventually([&] { return machine->has_logged("link veth0 carries 600 bytes a frame"); }));
  }

  HeldSums sums_;
  std::optional<Server> server_;
  std::optional<Conformance::Client> client_;

 private:
  static constexpr std::array<std::size_t, 5> kSizes{1, 500, 1150, 1380, 12'000};
  static std::vector<std::byte> bytes(std::size_t size) { return std::vector<std::byte>(size, std::byte{3}); }
  static void expect_end(Call call, std::size_t size, const char* when) {
    const auto sum = call.finish();
    ASSERT_TRUE(sum) << size << " bytes " << when << ": " << sum.error().message();
    EXPECT_EQ(*sum, 3 * size) << when;
  }
  /// Calls that the client's lrpc-netd has taken, by its state file; each try of a call counts.
  std::uint64_t calls_taken() const {
    std::ofstream(here->file("state"), std::ios::trunc) << "";
    std::string state;
    const std::string before = "; calls ";
    std::size_t at = std::string::npos;
    EXPECT_TRUE(eventually([&] {
      here->netd().send(SIGUSR1);
      std::ifstream file(here->file("state"));
      state.assign(std::istreambuf_iterator<char>(file), {});
      return (at = state.find(before)) != std::string::npos;
    }));
    return at == std::string::npos ? 0 : std::stoull(state.substr(at + before.size()));
  }
};

struct Over {
  const char* name;
  std::string graph;
  std::vector<std::string> options;
};

class ChangingLinks : public Changing, public ::testing::WithParamInterface<Over> {
 protected:
  void SetUp() override {
    TwoMachines::SetUp();
    if (!IsSkipped()) begin(GetParam().graph, GetParam().options);
  }
  void join_again(const std::string& name = "veth0") const {
    netrpc::test::join(here->where(), name, "10.7.0.1/24", there->where(), name, "10.7.0.2/24");
  }
};

TEST_P(ChangingLinks, calls_go_on_when_the_mtu_is_lowered_and_raised_again) {
  expect_calls_through([&] { both("link set veth0 mtu 1200"); }, "with an MTU of 1200");
  expect_calls_through([&] { both("link set veth0 mtu 1000"); }, "with an MTU of 1000");
  expect_calls_through([&] { both("link set veth0 mtu 1500"); }, "with an MTU of 1500 again");
}

TEST_P(ChangingLinks, calls_go_on_when_the_link_is_taken_down_and_up) {
  for (Machine* const machine : {here.get(), there.get()}) {
    const auto take_down_and_up = [&] {
      machine->where().ip("link set veth0 down");
      sums_.let_go();  // their replies find no link
      machine->where().ip("link set veth0 up");
    };
    expect_calls_through(take_down_and_up, "answered while the link was down");
    machine->where().ip("link set veth0 down");
    auto calls = calls_under_way();
    machine->where().ip("link set veth0 up");
    expect_ends(std::move(calls), "made while the link was down");
    expect_calls_of_all_sizes("after it had been down");
  }
}

TEST_P(ChangingLinks, calls_go_on_when_the_link_is_renamed) {
  const auto rename = [&] {
    both("link set veth0 down");
    both("link set veth0 name lan0");
    both("link set lan0 up");
  };
  expect_calls_through(rename, "under another name");
  expect_calls_through([&] { both("link set lan0 mtu 1200"); }, "under another name with another MTU");
  const auto make_again = [&] {
    here->where().ip("link delete lan0");
    join_again("lan0");
  };
  expect_calls_through(make_again, "over a link made again under the new name");
}

TEST_P(ChangingLinks, calls_go_on_when_the_link_is_removed_and_made_again) {
  for (int i = 0; i < 2; ++i) {
    const auto make_again = [&] {
      here->where().ip("link delete veth0");
      sums_.let_go();  // their replies find no link
      join_again();
    };
    expect_calls_through(make_again, "answered while there was no link");
    here->where().ip("link delete veth0");
    auto calls = calls_under_way();
    join_again();
    expect_ends(std::move(calls), "made while there was no link");
    expect_calls_of_all_sizes("over the link that was made again");
  }
  expect_calls_through([&] { both("link set veth0 mtu 1200"); }, "over the link that was made again, with another MTU");
}

TEST_P(ChangingLinks, calls_go_on_when_the_address_is_taken_away_and_given_back) {
  const auto take_away_and_give_back = [&] {
    here->where().ip("address del 10.7.0.1/24 dev veth0");
    sums_.let_go();  // their replies find no host
    here->where().ip("address add 10.7.0.1/24 dev veth0");
  };
  expect_calls_through(take_away_and_give_back, "answered while the address was away");
  here->where().ip("address del 10.7.0.1/24 dev veth0");
  here->where().ip("address add 10.7.0.9/24 dev veth0");
  auto calls = start_calls_of_all_sizes();
  here->where().ip("address del 10.7.0.9/24 dev veth0");
  here->where().ip("address add 10.7.0.1/24 dev veth0");
  expect_ends(std::move(calls), "made while the address was away");
  expect_calls_of_all_sizes("with the address again");
}

INSTANTIATE_TEST_SUITE_P(Over, ChangingLinks,
                         ::testing::Values(Over{"Ethernet", "", {}}, Over{"Udp", "--udp", {}},
                                           Over{"EthernetWithoutIoUring", "", {"--backend", "epoll"}}),
                         [](const auto& over) { return over.param.name; });

/// A router also joins the two machines. Their common link drops all IP packets, so whatever arrives over it went over
/// the Ethernet.
class ChangingRoutes : public Changing {
 protected:
  void SetUp() override {
    TwoMachines::SetUp();
    if (IsSkipped()) return;
    if (const auto why = netrpc::test::why_no_nftables()) GTEST_SKIP() << *why;
    router_.emplace();
    netrpc::test::join(here->where(), "veth1", "10.8.0.1/24", *router_, "here", "10.8.0.254/24");
    netrpc::test::join(there->where(), "veth1", "10.9.0.1/24", *router_, "there", "10.9.0.254/24");
    router_->forward();
    router_->ip("route add 10.7.0.1/32 via 10.8.0.1");
    router_->ip("route add 10.7.0.2/32 via 10.9.0.1");
    for (const Machine* const machine : {here.get(), there.get()}) {
      machine->where().nft("add table netdev link");
      machine->where().nft("add chain netdev link in { type filter hook ingress device veth0 priority 0 ; }");
      machine->where().nft("add rule netdev link in ether type ip drop");
    }
    begin("--interface veth0", {});
  }
  /// From now on the common link drops every frame, and nothing reports it.
  void cut_link() const {
    for (const Machine* const machine : {here.get(), there.get()}) machine->where().nft("add rule netdev link in drop");
  }
  void routes(const std::string& change, const std::string& here_by, const std::string& there_by) const {
    here->where().ip("route " + change + " 10.7.0.2/32 " + here_by);
    there->where().ip("route " + change + " 10.7.0.1/32 " + there_by);
  }

  std::optional<netrpc::test::Namespace> router_;
};

TEST_F(ChangingRoutes, calls_go_on_through_a_gateway_when_routes_lead_to_it) {
  cut_link();
  auto calls = calls_under_way();
  routes("add", "via 10.8.0.254", "via 10.9.0.254");
  expect_ends(std::move(calls), "made before there were routes");
  expect_calls_of_all_sizes("through the router");
}

TEST_F(ChangingRoutes, calls_go_on_when_the_gateway_changes) {
  routes("add", "via 10.8.0.253", "via 10.9.0.253");
  cut_link();
  auto calls = calls_under_way();
  routes("change", "via 10.8.0.254", "via 10.9.0.254");
  expect_ends(std::move(calls), "made while the routes led to a gateway that is not there");
  expect_calls_of_all_sizes("through the router");
}

TEST_F(ChangingRoutes, calls_go_on_when_a_gateway_is_the_way_no_longer) {
  routes("add", "via 10.8.0.254", "via 10.9.0.254");
  expect_calls_of_all_sizes("through the router");
  // The kernel removes the routes through the link, and sends no notification of that.
  expect_calls_through([&] { both("link set veth1 down"); }, "over the Ethernet again");
}

TEST_F(TwoMachines, a_binding_ends_with_its_link_and_a_new_one_is_made_over_the_next_link) {
  const Process server = start_exported_server();
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

TEST_F(Changing, a_call_whose_results_the_link_cannot_carry_any_more_is_lost_alone) {
  begin("", {});
  sums_.hold();
  std::array<std::byte, 12'000> room{};
  Buffer data(room);
  auto lost = client_->start().Fill(12'000, 3, data);
  auto carried = client_->start().Sum(room);
  ASSERT_TRUE(eventually([&] { return sums_.inside() == 2; }));
  shrink_link();
  sums_.let_go();
  EXPECT_EQ(lost.finish().code(), Errc::call_lost);
  EXPECT_TRUE(carried.finish());
  EXPECT_EQ(client_->Fill(12'000, 3, data).code(), Errc::call_lost);
  EXPECT_TRUE(client_->Fill(5000, 3, data));
}

TEST_F(Changing, a_call_whose_arguments_the_link_has_lost_and_cannot_carry_again_is_lost_alone) {
  if (const auto why = netrpc::test::why_no_nftables()) GTEST_SKIP() << *why;
  begin("", {});
  there->where().nft("add table netdev link");
  there->where().nft("add chain netdev link in { type filter hook ingress device veth0 priority 0 ; }");
  there->where().nft("add rule netdev link in drop");
  auto calls = calls_under_way();
  shrink_link();
  there->where().nft("delete table netdev link");
  EXPECT_EQ(calls.back().finish().code(), Errc::call_lost);
  calls.pop_back();
  expect_ends(std::move(calls), "over a smaller link than they were made for");
  EXPECT_TRUE(client_->Null());
}

TEST_F(TwoMachines, a_call_that_has_become_too_long_for_the_link_is_refused_and_its_binding_stays) {
  const Process server = start_exported_server();
  here->start_with_keys();
  auto client = import_patiently();
  ASSERT_TRUE(client) << client.error().message();
  here->where().ip("link set veth0 mtu 600");
  there->where().ip("link set veth0 mtu 600");
  for (const auto& machine : {&here, &there})  // earlier calls would be cut into fragments that no link carries
    ASSERT_TRUE(eventually([&] { return (*machine)->has_logged("link veth0 carries 600 bytes a frame"); }));
  const std::vector<std::byte> large(12'000, std::byte{3});
  EXPECT_EQ(client->Sum(large).code(), Errc::message_too_long);
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
