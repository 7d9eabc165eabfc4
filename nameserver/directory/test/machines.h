// Some machines of one network, each with its lrpcd, lrpc-netd and lrpc-directory, and an etcd on a machine of its own.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "etcd/published_name.h"
#include "guarded_etcd.h"
#include "netrpc/test_support/namespaces.h"
#include "two_machines.h"

namespace lrpc::directory::test {

using netd::test::Machine;
using testing_lrpc::eventually;
using testing_lrpc::Process;

class Machines : public ::testing::Test {
 protected:
  static constexpr std::size_t kMachines = 3;
  static constexpr int kLong = 3600;  ///< Seconds of a lease that does not expire, however slow the machine is.

  void SetUp() override {
    for (const auto& why : {why_no_etcd(), netrpc::test::why_no_namespaces(), netrpc::test::why_no_bridges()})
      if (why) GTEST_SKIP() << *why;
    store.emplace();
    bridge.emplace();
    bridge->plug(*store, "eth0", "10.7.0.100/24");
    etcd.emplace(
        "10.7.0.100", [this](const std::function<void()>& procedure) { store->run(procedure); },
        certificates ? certificates->of_server() : std::vector<std::string>());
    if (certificates) store->run([this] { make_users(*etcd, certificates->of_client()); });
    for (std::size_t i = 0; i < kMachines; ++i) {
      machines[i] = std::make_unique<Machine>("10.7.0." + std::to_string(i + 1));
      bridge->plug(machines[i]->where(), "eth0", machines[i]->address() + "/24");
    }
  }

  /// lrpc-netd and lrpc-directory on each, with such leases. Machine 1 has one of its own where a test waits for it to
  /// expire: the others are to keep theirs on a slow machine, too.
  void start_all(int lease = kLong, int lease_of_1 = 0) {
    for (std::size_t i = 0; i < kMachines; ++i) {
      start_netd(i);
      start_directory(i, i == 1 && lease_of_1 != 0 ? lease_of_1 : lease);
    }
  }
  void start_netd(std::size_t i, const std::string& exported = "conformance") {
    machines[i]->start_with_give_up(give_up, "--insecure", {"--address", machines[i]->address(), "--export", exported});
  }
  void start_directory(std::size_t i, int lease) {
    const std::string config = machines[i]->file("directory.toml");
    std::ofstream(config) << "directory = \"etcd\"\n[etcd]\nendpoints = [\"" << etcd->url() << "\"]\nlease = " << lease
                          << "\n"
                          << (certificates ? certificates->settings() : "");
    directories[i] =
        machines[i]->start({"/bin/sh", "-c", "exec \"$@\" 2>>" + machines[i]->file("directory.log"), "lrpc-directory",
                            LRPC_DIRECTORY, "--config", config, "--nameserver", machines[i]->socket()});
  }
  [[nodiscard]] Process start_server(std::size_t i, const std::string& name = "conformance") const {
    return machines[i]->start({LRPC_TEST_SERVER, "--nameserver", machines[i]->socket(), name});
  }
  /// As a client of machine `i`.
  [[nodiscard]] Result<Conformance::Client> import(std::size_t i, ImportOptions options = {},
                                                   const std::string& name = "conformance@") const {
    options.nameserver = machines[i]->socket();
    return Conformance::Client::import(name, options);
  }
  /// What an import comes to where etcd, which has 3 s for an answer, and the hosts have answered.
  [[nodiscard]] Errc outcome_of_import(std::size_t i, const std::string& name = "conformance@") const {
    Errc code = Errc::remote_unavailable;
    (void)eventually([&] { return (code = import(i, {}, name).code()) != Errc::remote_unavailable; });
    return code;
  }
  /// The process that answers, as soon as one does; 0: none.
  [[nodiscard]] int server_of(std::size_t i) const {
    int server = 0;
    (void)eventually([&] {
      auto client = import(i);
      const auto pid = client ? client->ServerPid() : Result<std::int32_t>(client.code());
      server = pid ? *pid : 0;
      return server != 0;
    });
    return server;
  }
  /// Ends machine 1's lrpc-directory by a signal. False: etcd has not answered it within 3 s, and still has its names;
  /// they are those of a new one by now.
  [[nodiscard]] bool ends_and_withdraws(int signal) {
    directories[1].kill_and_wait(signal);
    const std::string left = value_of_host("10.7.0.2");
    if (left.empty()) return true;
    start_directory(1, kLong);
    EXPECT_TRUE(eventually([&] { return value_of_host("10.7.0.2") != left; }));
    return false;
  }
  [[nodiscard]] EtcdOptions as_user() const {
    EtcdOptions options = etcd->options();
    if (!certificates) return options;
    options.tls = certificates->of_client();
    options.user = kUser;
    options.password = kPassword;
    return options;
  }
  /// The hosts that etcd has for a name, as their keys end.
  [[nodiscard]] std::set<std::string> published(const std::string& name = "conformance") const {
    std::set<std::string> hosts;
    store->run([&] {
      Etcd client(as_user());
      const std::string prefix = keys_of_name("/lrpc", name);
      const auto range = client.range(prefix, 100);
      if (!range) return;
      for (const KeyValue& entry : range->found) hosts.insert(entry.key.substr(prefix.size()));
    });
    return hosts;
  }
  /// As somebody else who may write into etcd.
  void write(const std::vector<KeyValue>& entries) const {
    store->run([&] {
      Etcd intruder(as_user());
      const auto lease = intruder.grant(std::chrono::hours(1));
      ASSERT_TRUE(lease) << lease.error().message();
      const Status put = intruder.put(entries, lease->id);
      ASSERT_TRUE(put) << put.error().message();
    });
  }
  /// What etcd has under the key of a host; empty: nothing.
  [[nodiscard]] std::string value_of_host(const std::string& host, const std::string& name = "conformance") const {
    std::string value;
    store->run([&] {
      Etcd client(as_user());
      const auto range = client.range(keys_of_name("/lrpc", name) + host, 1);
      if (range && !range->found.empty()) value = range->found.front().value;
    });
    return value;
  }
  [[nodiscard]] std::string directory_log(std::size_t i) const {
    std::ifstream in(machines[i]->file("directory.log"));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  using Hosts = std::set<std::string>;
  [[nodiscard]] ::testing::AssertionResult becomes_published(const Hosts& hosts) const {
    if (eventually([&] { return published() == hosts; })) return ::testing::AssertionSuccess();
    std::string logs;
    for (std::size_t i = 0; i < kMachines; ++i)
      logs += "\n" + machines[i]->address() + ":\n" + directory_log(i) + machines[i]->log();
    return ::testing::AssertionFailure() << ::testing::PrintToString(published()) << logs;
  }
  void link(std::size_t i, const std::string& state) const { machines[i]->where().ip("link set eth0 " + state); }

  std::string give_up = "25s";  ///< Until lrpc-netd believes that a host which says nothing will not answer.
  std::optional<netrpc::test::Namespace> store;
  std::optional<netrpc::test::Bridge> bridge;
  std::optional<Certificates> certificates;  ///< With these before SetUp(), etcd asks who one is.
  std::optional<EtcdServer> etcd;
  std::array<std::unique_ptr<Machine>, kMachines> machines;
  std::array<Process, kMachines> directories;
};

}  // namespace lrpc::directory::test
