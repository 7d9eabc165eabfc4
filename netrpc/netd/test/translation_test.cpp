// Machines behind an address translator, which is behind a router, call a machine that has no route to them.
#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>

#include "two_machines.h"

namespace lrpc::netd::test {
namespace {

using netrpc::test::Namespace;

struct Layers {
  const char* name;
  const char* above_auth;
};
const Layers kChannel{"Channel",
                      "fragment = FRAGMENT over auth;\n"
                      "channel = CHANNEL(give_up = 30s, reply_life = 40s) over fragment;\n"
                      "select = SELECT(channels = 288) over channel;\n"};
const Layers kPaired{"Paired", "paired = PAIRED(max_retry = 100) over auth;\nselect = SELECT over paired;\n"};

class BehindATranslation : public testing::TestWithParam<const Layers*> {
 protected:
  static constexpr std::size_t kInside = 2;

  void SetUp() override {
    if (const auto why = netrpc::test::why_no_namespaces()) GTEST_SKIP() << *why;
    if (const auto why = netrpc::test::why_no_bridges()) GTEST_SKIP() << *why;
    there = std::make_unique<Machine>("10.7.3.1");
    auto& [wire, translator, router] = between.emplace();
    for (std::size_t i = 0; i < kInside; ++i) {
      inside[i] = std::make_unique<Machine>("10.7.1." + std::to_string(i + 1));
      wire.plug(inside[i]->where(), "wire", inside[i]->address() + "/24");
      inside[i]->where().ip("route add default via 10.7.1.254");
      keys[i] = run(std::string(LRPC_NETD) + " --generate-key").output;
    }
    wire.plug(translator, "here", "10.7.1.254/24");
    netrpc::test::join(translator, "out", "10.7.2.1/24", router, "in", "10.7.2.254/24");
    netrpc::test::join(router, "there", "10.7.3.254/24", there->where(), "wire", "10.7.3.1/24");
    translator.forward();
    router.forward();
    translator.ip("route add default via 10.7.2.254");
    there->where().ip("route add 10.7.2.0/24 via 10.7.3.254");  // but no route to the machines inside
    try {
      translator.nft("add table ip translation");
      translator.nft("add chain ip translation out { type nat hook postrouting priority 100 ; }");
      translator.nft("add rule ip translation out oifname out masquerade");
    } catch (const std::runtime_error& why) {
      GTEST_SKIP() << "no address translation here: " << why.what();
    }
  }
  void start(Machine& machine, const std::string& key_lines, std::vector<std::string> options = {}) {
    machine.write_keys(key_lines);
    std::ofstream(machine.file("graph")) << "udp = UDP(address = \"" << machine.address()
                                         << "\", peer_ports = any);\nauth = AUTH(keys = \"" << machine.file("keys")
                                         << "\") over udp;\n"
                                         << GetParam()->above_auth;
    options.insert(options.end(), {"--graph", machine.file("graph")});
    machine.start_netd(std::move(options));
  }
  /// Starts lrpc-netd on all machines. Each machine inside has its own key.
  void start_all(const std::vector<std::string>& options_inside = {}) {
    start(*there, inside[0]->address() + " " + keys[0] + inside[1]->address() + " " + keys[1],
          {"--export", "conformance"});
    for (std::size_t i = 0; i < kInside; ++i) start(*inside[i], there->address() + " " + keys[i], options_inside);
    server = there->start({LRPC_TEST_SERVER, "--nameserver", there->socket(), "conformance"});
  }
  [[nodiscard]] Result<Conformance::Client> import(std::size_t from) const {
    return Conformance::Client::import("conformance@10.7.3.1", {.nameserver = inside[from]->socket()});
  }
  [[nodiscard]] Result<Conformance::Client> import_patiently(std::size_t from) const {
    return patiently([&] { return import(from); });
  }
  /// The translator forgets its port mappings and assigns other ports from now on. Packets to the old ports are
  /// dropped.
  void change_ports() const {
    const Namespace& translator = between->translator;
    const Namespace& outside = there->where();
    translator.nft("flush chain ip translation out");
    translator.nft("add rule ip translation out oifname out meta l4proto udp masquerade to :50000-50999");
    translator.ip("link set out down");  // removes the translator's masquerade mappings
    translator.ip("link set out up");
    translator.ip("route add default via 10.7.2.254");
    outside.nft("add table ip watch");
    outside.nft("add chain ip watch in { type filter hook input priority 0 ; }");
    outside.nft("add rule ip watch in udp sport != 50000-50999 drop");
    outside.nft("add chain ip watch out { type filter hook output priority 0 ; }");
    outside.nft("add rule ip watch out udp dport != 50000-50999 drop");
  }

  struct Between {
    netrpc::test::Bridge wire;
    Namespace translator;
    Namespace router;
  };
  std::optional<Between> between;
  std::unique_ptr<Machine> there;
  std::unique_ptr<Machine> inside[kInside];
  std::string keys[kInside];
  Process server;
};

TEST_P(BehindATranslation, several_machines_call_one_outside_at_once) {
  start_all();
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < kInside; ++i) {
    callers.emplace_back([this, i] {
      auto client = import_patiently(i);
      ASSERT_TRUE(client) << client.error().message() << inside[i]->log() << there->log();
      const std::vector<std::byte> large(12000, std::byte{3});
      for (int call = 0; call < 100; ++call) {
        const auto sum = client->Add(call, 42);
        ASSERT_TRUE(sum) << sum.error().message();
        EXPECT_EQ(*sum, call + 42);
      }
      EXPECT_EQ(client->Sum(large).value(), 36000U);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_P(BehindATranslation, a_machine_goes_on_when_the_translator_gives_it_another_port) {
  start_all();
  auto client = import_patiently(0);
  ASSERT_TRUE(client) << client.error().message() << there->log();
  ASSERT_TRUE(client->Null());
  server.send(SIGSTOP);
  std::atomic<bool> calling = false;
  std::thread under_way([&] {
    calling = true;
    const auto sum = client->Add(40, 2);
    ASSERT_TRUE(sum) << sum.error().message();
    EXPECT_EQ(*sum, 42);
  });
  EXPECT_TRUE(eventually([&] { return calling.load(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // by now the call is probably under way
  change_ports();
  server.send(SIGCONT);
  under_way.join();
  for (int call = 0; call < 20; ++call) {
    const auto sum = client->Add(call, 1);
    ASSERT_TRUE(sum) << sum.error().message();
  }
  EXPECT_TRUE(import_patiently(1)) << "and a machine that was not heard before comes in";
}

TEST_P(BehindATranslation, a_machine_outside_reaches_one_inside_only_once_that_has_called) {
  start_all({"--export", "conformance"});
  const Process inner = inside[0]->start({LRPC_TEST_SERVER, "--nameserver", inside[0]->socket(), "conformance"});
  const auto import_inwards = [this] {
    return Conformance::Client::import("conformance@10.7.1.1", {.nameserver = there->socket()});
  };
  EXPECT_EQ(import_inwards().code(), Errc::remote_unavailable);
  const auto client = import_patiently(0);
  ASSERT_TRUE(client) << client.error().message();
  auto inwards = patiently(import_inwards);
  ASSERT_TRUE(inwards) << inwards.error().message();
  EXPECT_EQ(inwards->Add(40, 2).value(), 42);
}

TEST_P(BehindATranslation, a_machine_without_a_key_of_its_own_is_not_heard_and_the_log_outside_says_why) {
  start(*there, "10.7.1.0/24 " + keys[0]);
  start(*inside[0], there->address() + " " + keys[0]);
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(import(0).code(), Errc::remote_unavailable);
    return there->has_logged(
        "host 10.7.1.1 wants to be heard from 10.7.2.1, which takes a line and a key of its own: '10.7.1.0/24'");
  })) << there->log();
}

INSTANTIATE_TEST_SUITE_P(Layers, BehindATranslation, testing::Values(&kChannel, &kPaired),
                         [](const testing::TestParamInfo<const Layers*>& one) { return one.param->name; });

}  // namespace
}  // namespace lrpc::netd::test
