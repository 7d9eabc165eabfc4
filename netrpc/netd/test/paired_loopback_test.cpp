// Two machines on one, without any privilege: each has an address of the loopback, and calls go by PAIRED over UDP.
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

class LoopbackMachine {
 public:
  explicit LoopbackMachine(std::string address) : address_(std::move(address)) {
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
                                 << file("keys")
                                 << "\") over udp;\npaired = PAIRED(max_retry = 40) over auth;\n"
                                    "select = SELECT(channels = 288) over paired;\n";
    std::vector<std::string> arguments{LRPC_NETD,     "--nameserver", socket(), "--graph",
                                       file("graph"), "--log-level",  "off"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    netd_ = Process(arguments);
  }
  void kill_netd() { netd_ = Process(); }

 private:
  const std::string address_;
  testing_lrpc::TemporaryDirectory directory_;
  Process lrpcd_;
  Process netd_;
};

TEST(PairedLoopback,
     a_client_imports_and_calls_over_paired_auth_and_udp_and_again_after_the_other_netd_was_started_anew) {
  LoopbackMachine here("127.7.0.1");
  LoopbackMachine there("127.7.0.2");
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

}  // namespace
}  // namespace lrpc::netd::test
