// Two machines as users have them: namespaces joined by a veth pair, an lrpcd and an lrpc-netd in each, and servers and
// clients that know nothing of the network but a name@host.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance.client.h"
#include "eventually.h"
#include "netrpc/test_support/namespaces.h"
#include "run.h"
#include "world.h"

namespace lrpc::netd::test {

using testing_lrpc::eventually;
using testing_lrpc::Process;

class Machine {
 public:
  explicit Machine(std::string address) : address_(std::move(address)) {
    in([&] { lrpcd_ = Process({LRPCD, "--socket", socket(), "--log-level", "off", "--bind-timeout-ms", "240000"}); });
  }
  void in(const std::function<void()>& procedure) const { where_.run(procedure); }
  [[nodiscard]] const netrpc::test::Namespace& where() const { return where_; }
  [[nodiscard]] std::string socket() const { return file("lrpcd.sock"); }
  [[nodiscard]] std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  [[nodiscard]] const std::string& address() const { return address_; }

  void write_keys(const std::string& text) const {
    std::ofstream(file("keys")) << text;
    ASSERT_EQ(::chmod(file("keys").c_str(), 0600), 0);
  }
  void start_netd(std::vector<std::string> options = {}) {
    std::vector<std::string> arguments{"/bin/sh", "-c", "exec \"$@\" 2>>" + file("log"), "lrpc-netd"};
    arguments.insert(arguments.end(), {LRPC_NETD, "--nameserver", socket(), "--log-level", "warning"});
    arguments.insert(arguments.end(), options.begin(), options.end());
    in([&] { netd_ = Process(std::move(arguments)); });
  }
  void start_with_keys(std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--keys", file("keys")});
    start_netd(std::move(options));
  }
  /// Starts lrpc-netd with the built-in graph for `options`, changed: `changes` holds pairs of a text and its
  /// replacement.
  void start_changed(const std::string& options, const std::vector<std::pair<std::string, std::string>>& changes,
                     const std::vector<std::string>& more = {}) {
    std::string graph;
    in([&] { graph = run(std::string(LRPC_NETD) + " --check " + options).output; });
    for (const auto& [was, is] : changes) {
      const std::size_t at = graph.find(was);
      ASSERT_NE(at, std::string::npos) << graph;
      graph.replace(at, was.size(), is);
    }
    std::ofstream(file("graph")) << graph;
    std::vector<std::string> arguments{"--graph", file("graph")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    start_netd(std::move(arguments));
  }
  /// Starts one whose calls to a silent host fail after `give_up`.
  void start_with_give_up(const std::string& give_up, const std::string& options,
                          const std::vector<std::string>& more = {}) {
    start_changed(options, {{"give_up = 30s", "give_up = " + give_up}}, more);
  }
  /// Starts one whose AUTH accepts only this cipher.
  void start_with_cipher(const std::string& cipher, const std::vector<std::string>& more = {}) {
    start_changed("--keys " + file("keys"),
                  {{"give_up = 30s", "give_up = 500ms"}, {"AUTH(", "AUTH(cipher = \"" + cipher + "\", "}}, more);
  }
  /// For tests in which no host answers.
  void start_impatient(const std::string& options, const std::vector<std::string>& more = {}) {
    start_with_give_up("500ms", options, more);
  }
  void start_impatient_with_keys(const std::vector<std::string>& more = {}) {
    start_impatient("--keys " + file("keys"), more);
  }
  /// What lrpc-netd has written to its standard error.
  [[nodiscard]] std::string log() const {
    std::ifstream in(file("log"));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Starts any program, and waits until it has printed a line.
  Process start(std::vector<std::string> arguments) const {
    Process process;
    in([&] { process = Process(std::move(arguments)); });
    return process;
  }
  Process& netd() { return netd_; }
  [[nodiscard]] bool has_logged(const std::string& what) const {
    std::ifstream log(file("log"));
    for (std::string line; std::getline(log, line);)
      if (line.find(what) != std::string::npos) return true;
    return false;
  }

 private:
  const std::string address_;
  netrpc::test::Namespace where_;
  testing_lrpc::TemporaryDirectory directory_;
  Process lrpcd_;
  Process netd_;
};

/// The outcome of `import`, which is repeated while no host answers.
template <class Import>
[[nodiscard]] auto patiently(const Import& import) {
  auto imported = import();
  (void)eventually([&] {
    if (imported.code() != Errc::remote_unavailable) return true;
    imported = import();
    return false;
  });
  return imported;
}

class TwoMachines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = netrpc::test::why_no_namespaces()) GTEST_SKIP() << *why;
    here = std::make_unique<Machine>("10.7.0.1");
    there = std::make_unique<Machine>("10.7.0.2");
    netrpc::test::join(here->where(), "veth0", "10.7.0.1/24", there->where(), "veth0", "10.7.0.2/24");
    key = run(std::string(LRPC_NETD) + " --generate-key").output;
  }
  /// Gives each machine the key for the other one.
  void share_key() {
    here->write_keys("10.7.0.2 " + key);
    there->write_keys("10.7.0.1 " + key);
  }
  Process start_server(const std::string& name = "conformance") const {
    return there->start({LRPC_TEST_SERVER, "--nameserver", there->socket(), name});
  }
  /// Starts a server that every host with the key may import.
  Process start_exported_server(const std::vector<std::string>& options = {"--export", "conformance"}) {
    share_key();
    Process server = start_server();
    there->start_with_keys(options);
    return server;
  }
  [[nodiscard]] Result<Conformance::Client> import(const std::string& name = "conformance@10.7.0.2") const {
    return Conformance::Client::import(name, {.nameserver = here->socket()});
  }
  /// Repeats the import until the host answers. lrpc-netd waits for 5 s each time.
  [[nodiscard]] Result<Conformance::Client> import_patiently(const std::string& name = "conformance@10.7.0.2") const {
    return patiently([&] { return import(name); });
  }
  /// Makes `count` bindings to a server and then stops it by SIGSTOP, so that their calls last until it continues.
  [[nodiscard]] std::vector<Conformance::Client> bind_and_stop(const Process& server, std::size_t count) const {
    std::vector<Conformance::Client> clients;
    for (std::size_t i = 0; i < count; ++i) {
      auto client = import_patiently();
      EXPECT_TRUE(client) << client.error().message();
      if (client) clients.push_back(*std::move(client));
    }
    server.send(SIGSTOP);
    return clients;
  }
  void expect_calls(const std::vector<std::string>& here_options, const std::vector<std::string>& there_options) {
    auto exporting = there_options;
    exporting.insert(exporting.end(), {"--export", "conformance"});
    const Process server = start_exported_server(exporting);
    here->start_with_keys(here_options);
    auto client = import_patiently();
    ASSERT_TRUE(client) << client.error().message();
    for (int i = 0; i < 100; ++i) {
      const auto sum = client->Add(i, 42);
      ASSERT_TRUE(sum) << sum.error().message();
      EXPECT_EQ(*sum, i + 42);
    }
    std::vector<std::byte> large(12000, std::byte{3});
    EXPECT_EQ(client->Sum(large).value(), 36000U);
  }

  static void expect_said(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  /// Imports until it is refused with this reason: on a busy machine the host may at first seem silent.
  void expect_import_refused(const std::string& reason) {
    Result<Conformance::Client> refused = import();
    EXPECT_TRUE(eventually([&] {
      if (!refused && refused.error().text.find(reason) != std::string::npos) return true;
      refused = import();
      return false;
    })) << (refused ? "imported" : refused.error().text);
    EXPECT_EQ(refused.code(), Errc::remote_unavailable);
  }
  static void expect_logged(const Machine& machine, const std::string& part) {
    EXPECT_TRUE(eventually([&] { return machine.log().find(part) != std::string::npos; })) << part << "\n"
                                                                                           << machine.log();
  }

  std::unique_ptr<Machine> here;
  std::unique_ptr<Machine> there;
  std::string key;
};

}  // namespace lrpc::netd::test
