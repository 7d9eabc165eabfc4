// Two hosts on one machine, without any privilege: each has a loopback address, and calls go over UDP by a graph of
// this test.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "conformance.client.h"
#include "eventually.h"
#include "lrpc/netrpc/user/user_process.h"
#include "receive_patiently.h"
#include "run.h"
#include "world.h"

namespace lrpc::netd::test {
namespace {

using testing_lrpc::eventually;
using testing_lrpc::Process;

/// The part of the graph above AUTH.
struct Upper {
  const char* name;
  const char* graph;
};
constexpr Upper kUppers[] = {
    {"Paired", "paired = PAIRED(max_retry = 40) over auth;\nselect = SELECT(channels = 288) over paired;\n"},
    {"SunRpcOverChannel",
     "fragment = FRAGMENT over auth;\nchannel = CHANNEL(give_up = 30s, reply_life = 40s) over fragment;\n"
     "call = SUN_CALL(channels = 288) over channel;\nsun = SUN_SELECT(program = 0x20000001) over call;\n"},
};

class LoopbackMachine {
 public:
  LoopbackMachine(std::string address, std::string upper) : address_(std::move(address)), upper_(std::move(upper)) {
    lrpcd_ = Process({LRPCD, "--socket", socket(), "--log-level", "off", "--bind-timeout-ms", "240000"});
  }
  [[nodiscard]] std::string socket() const { return file("lrpcd.sock"); }
  [[nodiscard]] std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  void share(const std::string& key) const {
    std::ofstream(file("keys")) << "127.0.0.0/8 " << key;
    ASSERT_EQ(::chmod(file("keys").c_str(), 0600), 0);
  }
  /// Ports that no other run of this test uses.
  [[nodiscard]] static int ports() { return 20'000 + getpid() % 40'000; }
  void start_netd(const std::vector<std::string>& options = {}) {
    std::ofstream(file("graph")) << "udp    = UDP(address = \"" << address_ << "\", ports = " << ports()
                                 << ");\nauth   = AUTH(keys = \"" << file("keys") << "\") over udp;\n"
                                 << upper_;
    std::vector<std::string> arguments{LRPC_NETD,     "--nameserver", socket(), "--graph",
                                       file("graph"), "--log-level",  "off"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    netd_ = Process(arguments);
  }
  void kill_netd() { netd_ = Process(); }

 private:
  const std::string address_;
  const std::string upper_;
  testing_lrpc::TemporaryDirectory directory_;
  Process lrpcd_;
  Process netd_;
};

class Loopback : public testing::TestWithParam<Upper> {};

TEST_P(Loopback, a_client_imports_and_calls_over_udp_and_again_after_the_other_netd_was_started_anew) {
  LoopbackMachine here("127.7.0.1", GetParam().graph);
  LoopbackMachine there("127.7.0.2", GetParam().graph);
  const std::string key = run(std::string(LRPC_NETD) + " --generate-key").output;
  here.share(key);
  there.share(key);
  const Process server({LRPC_TEST_SERVER, "--nameserver", there.socket(), "conformance"});
  // Not io_uring: the kernel closes its sockets some time after the process has ended.
  const std::vector<std::string> exporting{"--export", "conformance", "--backend", "epoll"};
  there.start_netd(exporting);
  here.start_netd();
  const auto import = [&] {
    return Conformance::Client::import("conformance@127.7.0.2", {.nameserver = here.socket()});
  };
  {
    Result<Conformance::Client> client = import();
    ASSERT_TRUE(eventually([&] { return client || (client = import()).has_value(); })) << client.error().message();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(client->Add(i, 42).value(), i + 42);
    const std::vector<std::byte> large(12'000, std::byte{3});
    EXPECT_EQ(client->Sum(large).value(), 36'000U);
    there.kill_netd();
    there.start_netd(exporting);
    EXPECT_FALSE(client->Null());  // its binding belongs to the earlier life of the server's host
  }
  EXPECT_TRUE(eventually([&] {
    auto client = import();
    return client && client->Null();
  }));
}

TEST(LoopbackUser, a_process_is_a_protocol_of_the_graph_that_is_named_in_its_line) {
  LoopbackMachine machine("127.7.0.3", "paired = PAIRED over udp;\nuser = USER(name = echo, number = 245) over udp;\n");
  machine.share(run(std::string(LRPC_NETD) + " --generate-key").output);
  machine.start_netd();
  netuser::UserProcess::Options options;
  options.binding.nameserver = machine.socket();
  options.receive = [](netuser::UserProcess& self, const netuser::UserProcess::Arrived& arrived) {
    (void)self.push(arrived.session, arrived.message);
  };
  const auto echo = netuser::UserProcess::create("echo", options);
  ASSERT_TRUE(echo) << echo.error().message();
  ASSERT_TRUE((*echo)->enable());
  const UniqueFd peer(::socket(AF_INET, SOCK_DGRAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(machine.ports() + 245));
  ASSERT_EQ(::inet_pton(AF_INET, "127.7.0.4", &address.sin_addr), 1);
  ASSERT_EQ(::bind(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::inet_pton(AF_INET, "127.7.0.3", &address.sin_addr), 1);
  ASSERT_EQ(::connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  char byte = 'x';
  ASSERT_EQ(::send(peer.get(), &byte, 1, 0), 1);
  byte = 0;
  EXPECT_EQ(testing_lrpc::receive_patiently(peer.get(), {&byte, 1}), 1);
  EXPECT_EQ(byte, 'x');
}

TEST(LoopbackUser, a_name_that_somebody_else_has_keeps_nothing_else_from_starting) {
  LoopbackMachine machine("127.7.0.5",
                          "paired = PAIRED over udp;\ntaken = USER(name = taken, number = 245) over udp;\n"
                          "free = USER(name = free, number = 246) over udp;\n");
  machine.share(run(std::string(LRPC_NETD) + " --generate-key").output);
  const Process server({LRPC_TEST_SERVER, "--nameserver", machine.socket(), "lrpc.user.taken"});
  ASSERT_TRUE(eventually(
      [&] { return Conformance::Client::import("lrpc.user.taken", {.nameserver = machine.socket()}).has_value(); }));
  machine.start_netd();
  netuser::UserProcess::Options options;
  options.binding.nameserver = machine.socket();
  EXPECT_TRUE(eventually([&] { return netuser::UserProcess::create("free", options).has_value(); }));
  EXPECT_EQ(netuser::UserProcess::create("taken", options).code(), Errc::interface_mismatch);
}

INSTANTIATE_TEST_SUITE_P(Graphs, Loopback, testing::ValuesIn(kUppers),
                         [](const auto& upper) { return std::string(upper.param.name); });

}  // namespace
}  // namespace lrpc::netd::test
