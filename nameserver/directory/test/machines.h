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

#include "etcd_server.h"
#include "netrpc/test_support/namespaces.h"
#include "published_name.h"
#include "two_machines.h"

namespace lrpc::directory::test {

using netd::test::Machine;
using testing_lrpc::eventually;
using testing_lrpc::Process;

class Machines : public ::testing::Test {
 protected:
  static constexpr std::size_t kMachines = 3;

  void SetUp() override {
    for (const auto& why : {why_no_etcd(), netrpc::test::why_no_namespaces(), netrpc::test::why_no_bridges()})
      if (why) GTEST_SKIP() << *why;
    store.emplace();
    bridge.emplace();
    bridge->plug(*store, "eth0", "10.7.0.100/24");
    etcd.emplace("10.7.0.100", [this](const std::function<void()>& procedure) { store->run(procedure); });
    for (std::size_t i = 0; i < kMachines; ++i) {
      machines[i] = std::make_unique<Machine>("10.7.0." + std::to_string(i + 1));
      bridge->plug(machines[i]->where(), "eth0", machines[i]->address() + "/24");
    }
  }

  /// lrpc-netd and lrpc-directory on each.
  void start_all(int lease = 60) {
    for (std::size_t i = 0; i < kMachines; ++i) {
      start_netd(i);
      start_directory(i, lease);
    }
  }
  /// That notices within a second that the other host does not answer.
  void start_netd(std::size_t i) {
    machines[i]->start_impatient("--insecure", {"--address", machines[i]->address(), "--export", "conformance"});
  }
  void start_directory(std::size_t i, int lease) {
    const std::string config = machines[i]->file("directory.toml");
    std::ofstream(config) << "directory = \"etcd\"\n[etcd]\nendpoints = [\"http://10.7.0.100:2379\"]\nlease = " << lease
                          << "\n";
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
  /// The process that answers, or 0.
  [[nodiscard]] int server_of(std::size_t i, ImportOptions options = {}) const {
    auto client = import(i, std::move(options));
    if (!client) return 0;
    const auto pid = client->ServerPid();
    return pid ? *pid : 0;
  }
  /// The hosts that etcd has for a name, as their keys end.
  [[nodiscard]] std::set<std::string> published(const std::string& name = "conformance") const {
    std::set<std::string> hosts;
    store->run([&] {
      Etcd client(etcd->options());
      const std::string prefix = keys_of_name("/lrpc", name);
      const auto range = client.range(prefix, 100);
      if (!range) return;
      for (const KeyValue& entry : range->found) hosts.insert(entry.key.substr(prefix.size()));
    });
    return hosts;
  }
  /// What etcd has under the key of a host; empty: nothing.
  [[nodiscard]] std::string value_of_host(const std::string& host, const std::string& name = "conformance") const {
    std::string value;
    store->run([&] {
      Etcd client(etcd->options());
      const auto range = client.range(keys_of_name("/lrpc", name) + host, 1);
      if (range && !range->found.empty()) value = range->found.front().value;
    });
    return value;
  }
  using Hosts = std::set<std::string>;
  [[nodiscard]] ::testing::AssertionResult becomes_published(const Hosts& hosts) const {
    if (eventually([&] { return published() == hosts; })) return ::testing::AssertionSuccess();
    std::string logs;
    for (const auto& machine : machines) {
      std::ifstream in(machine->file("directory.log"));
      logs += "\n" + machine->address() + ":\n" + std::string(std::istreambuf_iterator<char>(in), {}) + machine->log();
    }
    return ::testing::AssertionFailure() << ::testing::PrintToString(published()) << logs;
  }
  void link(std::size_t i, const std::string& state) const { machines[i]->where().ip("link set eth0 " + state); }

  std::optional<netrpc::test::Namespace> store;
  std::optional<netrpc::test::Bridge> bridge;
  std::optional<EtcdServer> etcd;
  std::array<std::unique_ptr<Machine>, kMachines> machines;
  std::array<Process, kMachines> directories;
};

}  // namespace lrpc::directory::test
