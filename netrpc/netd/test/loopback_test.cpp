// Two machines on one, without any privilege: each has an address of the loopback, and calls go over UDP by a
// graph of the test's own.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "conformance.client.h"
#include "eventually.h"
#include "run.h"
#include "world.h"

namespace lrpc::netd::test {
namespace {

using testing_lrpc::eventually;
using testing_lrpc::Process;

/// What stands on AUTH.
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
  /// Ports that no other run of this test has.
  void start_netd(const std::vector<std::string>& options = {}) {
    std::ofstream(file("graph")) << "udp    = UDP(address = \"" << address_
                                 << "\", ports = " << 20'000 + getpid() % 40'000 << ");\nauth   = AUTH(keys = \""
                                 << file("keys") << "\") over udp;\n"
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
  // Without io_uring, whose sockets the kernel closes some time after the process has ended.
  const std::vector<std::string> exporting{"--export", "conformance", "--backend", "epoll"};
  there.start_netd(exporting);
  here.start_netd();
  const auto import = [&] {
    return Conformance::Client::import("conformance@127.7.0.2", {.nameserver = here.socket()});
  };
  {
    auto client = import();
    ASSERT_TRUE(client) << client.error().message();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(client->Add(i, 42).value(), i + 42);
    const std::vector<std::byte> large(12'000, std::byte{3});
    EXPECT_EQ(client->Sum(large).value(), 36'000U);
    there.kill_netd();
    there.start_netd(exporting);
    EXPECT_FALSE(client->Null());  // its binding was the former life's
  }
  EXPECT_TRUE(eventually([&] {
    auto client = import();
    return client && client->Null();
  }));
}

INSTANTIATE_TEST_SUITE_P(Graphs, Loopback, testing::ValuesIn(kUppers),
                         [](const auto& upper) { return std::string(upper.param.name); });

}  // namespace
}  // namespace lrpc::netd::test
