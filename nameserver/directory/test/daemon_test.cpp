// lrpc-directory as a process: its configuration, its sandbox, its end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "attempts.h"
#include "conformance_service.h"
#include "directory.client.h"
#include "directory_sandbox.h"
#include "eventually.h"
#include "fake_etcd.h"
#include "fake_network_domain.h"
#include "frozen_nameserver.h"
#include "lookup/resolver.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "run.h"
#include "world.h"

namespace lrpc::directory::test {
namespace {

using netd::test::run;

class DirectoryDaemon : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file(const std::string& name) const { return (directory.path() / name).string(); }
  netd::test::Ran run_with(const std::string& config, const std::string& options) const {
    std::ofstream(file("directory.toml")) << config;
    return run(std::string(LRPC_DIRECTORY) + " --config " + file("directory.toml") + " " + options);
  }
  void expect_said(const netd::test::Ran& ran, const std::string& part) const {
    EXPECT_NE(ran.output.find(part), std::string::npos) << ran.output;
  }
  testing_lrpc::TemporaryDirectory directory;
};

TEST_F(DirectoryDaemon, does_nothing_unless_the_configuration_says_etcd) {
  const auto local = run_with("", "");
  EXPECT_EQ(local.status, 1);
  expect_said(local, "does not say directory = \"etcd\"");
  expect_said(run_with("directory = \"local\"", "--check"), "names stay on this machine");
}

TEST_F(DirectoryDaemon, says_what_its_configuration_means_and_what_is_wrong_with_it) {
  const auto right = run_with("directory = \"etcd\"\n[etcd]\nendpoints = [\"http://10.0.0.1:2379\"]", "--check");
  EXPECT_EQ(right.status, 0);
  expect_said(right, "http://10.0.0.1:2379, keys below /lrpc, a lease of 30 s, no user");
  const auto wrong = run_with("directory = \"etcd\"\n[etcd]\nendpoints = 7\nlease = 0", "--check");
  EXPECT_EQ(wrong.status, 1);
  expect_said(wrong, "etcd.endpoints: ");
  expect_said(wrong, "etcd.lease: ");
  EXPECT_EQ(run(std::string(LRPC_DIRECTORY) + " --config " + file("none") + " --check").status, 1);
}

TEST_F(DirectoryDaemon, takes_no_default_in_the_place_of_an_empty_value) {
  for (const std::string option : {"--config", "--nameserver"}) {
    const auto ran = run(std::string(LRPC_DIRECTORY) + " " + option + " ''");
    EXPECT_NE(ran.status, 0) << option;
    expect_said(ran, option + ": it is empty");
  }
}

TEST_F(DirectoryDaemon, warns_of_a_password_that_goes_out_in_plain_text) {
  std::ofstream(file("password")) << "secret\n";
  std::filesystem::permissions(file("password"), std::filesystem::perms(0600));
  const std::string rest = ":2379\"]\nuser = \"u\"\npassword_file = \"" + file("password") + "\"\n";
  const auto plain = run_with("directory = \"etcd\"\n[etcd]\nendpoints = [\"http://10.0.0.1" + rest, "--check");
  EXPECT_EQ(plain.status, 0);
  expect_said(plain, "warning: user and password go to http://10.0.0.1:2379 in plain text");
  const auto tls = run_with("directory = \"etcd\"\n[etcd]\nendpoints = [\"https://10.0.0.1" + rest, "--check");
  EXPECT_EQ(tls.status, 0);
  EXPECT_EQ(tls.output.find("warning"), std::string::npos) << tls.output;
}

TEST_F(DirectoryDaemon, does_not_start_where_only_its_capabilities_let_it_read_a_key) {
  for (const char* const name : {"host.pem", "host-key.pem"}) std::ofstream(file(name)) << "x";
  std::filesystem::permissions(file("host-key.pem"), std::filesystem::perms(0600));
  if (::chown(file("host-key.pem").c_str(), 1, 1) != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string config = "directory = \"etcd\"\n[etcd]\nendpoints = [\"https://127.0.0.1:1\"]\ncertificate = \"" +
                             file("host.pem") + "\"\nkey = \"" + file("host-key.pem") + "\"\n";
  for (const std::string options : {"--check", "", "--sandbox off"}) {
    const auto ran = run_with(config, options + " --log-level off --nameserver " + file("none.sock"));
    EXPECT_EQ(ran.status, 1);
    expect_said(ran, "etcd.key: cannot read " + file("host-key.pem"));
  }
}

TEST_F(DirectoryDaemon, needs_an_lrpcd) {
  const auto alone = run_with("directory = \"etcd\"\n[etcd]\nendpoints = [\"http://127.0.0.1:1\"]",
                              "--nameserver " + file("none.sock") + " --log-level off");
  EXPECT_EQ(alone.status, 1);
  expect_said(alone, "none.sock");
}

TEST_F(DirectoryDaemon, ends_when_it_is_told_to_while_lrpcd_does_not_answer) {
  std::ofstream(file("directory.toml")) << "directory = \"etcd\"\n[etcd]\nendpoints = [\"http://127.0.0.1:1\"]";
  const netd::test::FrozenNameserver nameserver;
  netd::test::Running daemon(std::string(LRPC_DIRECTORY) + " --config " + file("directory.toml") + " --nameserver " +
                             nameserver.path());
  EXPECT_TRUE(nameserver.connected());
  daemon.send(SIGTERM);
  const netd::test::Ran ran = daemon.end();
  EXPECT_EQ(ran.status, 0) << ran.output;
  expect_said(ran, "stops");
}

TEST_F(DirectoryDaemon, ends_at_once_when_it_is_told_to_twice) {
  testing_lrpc::World world;
  FakeNetworkDomain network_domain;
  testing_lrpc::ConformanceService service;
  FakeEtcd etcd;
  etcd.leave_revocations_unanswered();
  Server server({.nameserver = world.nameserver()});
  ASSERT_TRUE(network::export_to(server, std::string(shim::kNetworkName), network_domain));
  ASSERT_TRUE(Conformance::export_to(server, "files", service));
  std::ofstream(file("directory.toml")) << "directory = \"etcd\"\n[etcd]\nendpoints = [\""
                                        << etcd.options().endpoints.front() << "\"]\n";
  netd::test::Running daemon(std::string(LRPC_DIRECTORY) + " --config " + file("directory.toml") + " --nameserver " +
                             world.nameserver());
  ASSERT_TRUE(testing_lrpc::eventually([&] { return !etcd.keys().empty(); }));
  daemon.send(SIGTERM);
  ASSERT_TRUE(testing_lrpc::eventually([&] { return etcd.revoking(); }));
  daemon.send(SIGTERM);
  EXPECT_EQ(daemon.end().status, -1) << "it has waited for etcd, and was not killed";
}

TEST_F(DirectoryDaemon, says_nothing_to_etcd_where_there_is_one_already) {
  testing_lrpc::World world;
  FakeNetworkDomain network_domain;
  testing_lrpc::ConformanceService service;
  FakeEtcd etcd;
  Server server({.nameserver = world.nameserver()});
  ASSERT_TRUE(network::export_to(server, std::string(shim::kNetworkName), network_domain));
  ASSERT_TRUE(Conformance::export_to(server, "files", service));
  ASSERT_TRUE(Conformance::export_to(server, std::string(shim::kDirectoryName), service));
  for (int i = 0; i < 10; ++i) {
    const auto second =
        run_with("directory = \"etcd\"\n[etcd]\nendpoints = [\"" + etcd.options().endpoints.front() + "\"]",
                 "--nameserver " + world.nameserver() + " --log-level off");
    EXPECT_EQ(second.status, 1);
    expect_said(second, "is exported by process");
  }
  EXPECT_EQ(etcd.requests(), 0);
}

/// With an etcd of the test's, and a low soft limit of descriptors.
class RunningDirectory : public DirectoryDaemon {
 protected:
  void SetUp() override {
    shim::raise_descriptor_limit();  // each client takes some here, too
    std::ofstream(file("directory.toml"))
        << "directory = \"etcd\"\n[etcd]\nendpoints = [\"" << etcd.options().endpoints.front() << "\"]\n";
    process = testing_lrpc::Process({"/bin/sh", "-c", "ulimit -Sn 256; exec \"$@\"", "lrpc-directory", LRPC_DIRECTORY,
                                     "--config", file("directory.toml"), "--nameserver", world.nameserver(),
                                     "--log-level", "off"});
  }
  /// This process binds itself so many times more. The first error, if any.
  Status bind(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto client = Directory::Client::import(shim::kDirectoryName, {.nameserver = world.nameserver()});
      if (!client) return client.error();
      clients.push_back(*std::move(client));
    }
    return {};
  }

  testing_lrpc::World world;
  FakeEtcd etcd;
  testing_lrpc::Process process;
  std::vector<Directory::Client> clients;
};

TEST_F(RunningDirectory, serves_as_many_imports_as_its_hard_limit_of_descriptors_allows) {
  const Status bound = bind(150);
  EXPECT_TRUE(bound) << clients.size() << ": " << bound.error().message();
}

TEST_F(RunningDirectory, is_waited_for_by_an_import_while_its_user_has_all_bindings_that_it_may_have) {
  const auto import = [&](std::chrono::milliseconds timeout) {
    return Conformance::Client::import("nothing@", {.nameserver = world.nameserver(), .timeout = timeout}).code();
  };
  EXPECT_TRUE(testing_lrpc::eventually([&] {  // a slow machine may need longer than an import waits
    EXPECT_EQ(bind(300).code(), Errc::limit_reached);
    EXPECT_EQ(import(std::chrono::milliseconds(0)), Errc::limit_reached);
    std::thread others([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      clients.clear();
    });
    const Errc waited = import(std::chrono::seconds(2));
    others.join();
    return waited == Errc::name_unknown;
  }));
}

TEST_F(DirectoryDaemon, reads_in_its_sandbox_what_tls_needs_and_can_get_hold_of_nothing_else) {
  using namespace sandbox::test;
  Config config;
  config.server.endpoints = {"https://10.0.0.1:2379"};
  config.server.tls.ca = file("ca.pem");
  std::ofstream(file("ca.pem")) << "x";
  const testing_lrpc::TemporaryDirectory archive;
  const std::string certificate = (archive.path() / "host1.pem").string();
  std::ofstream(certificate) << "x";
  std::filesystem::create_symlink(certificate, file("host.pem"));
  config.server.tls.certificate = file("host.pem");
  const testing_lrpc::TemporaryDirectory elsewhere;
  const std::string secret = (elsewhere.path() / "secret").string();
  std::ofstream(secret) << "x";
  const Victim victim;
  const std::string failed = in_a_child([&]() -> std::string {
    sandbox::Options options = sandbox_of_directory(config);
    const auto entered = sandbox::enter(options);
    if (!entered) return entered.error().message();
    if (!entered->complete()) return {};  // a sanitizer's build, or an old kernel
    if (opening(file("ca.pem"), O_RDONLY).act() != 0) return "cannot read its authorities";
    if (opening(file("host.pem"), O_RDONLY).act() != 0) return "cannot read the certificate behind a link";
    if (socket_of("TCP", AF_INET, SOCK_STREAM).act() != 0) return "cannot make a TCP socket";
    if (opening(secret, O_RDONLY).act() == 0) return "can read other files";
    if (opening("/etc/ssl/private", O_RDONLY).act() == 0) return "can read the machine's private keys";  // where it is
    auto attempts = forbidden_to_all(victim.pid());
    std::erase_if(attempts, [](const Attempt& one) { return one.name.starts_with("socket TCP"); });
    return not_refused(attempts);
  });
  EXPECT_EQ(failed, "");
}

TEST_F(DirectoryDaemon, knows_which_of_the_resolvers_files_its_sandbox_forbids) {
  Config config;
  config.server.tls.ca = file("ca.pem");
  std::ofstream(file("ca.pem")) << "x";
  const testing_lrpc::TemporaryDirectory elsewhere;
  const std::string another = (elsewhere.path() / "hosts").string();
  std::ofstream(another) << "x";
  const std::string none = file("none");
  const std::string same = file("ca.pem");
  const std::string failed = sandbox::test::in_a_child([&]() -> std::string {
    const auto entered = sandbox::enter(sandbox_of_directory(config));
    if (!entered) return entered.error().message();
    if (!entered->complete()) return {};  // a sanitizer's build, or an old kernel
    const std::string forbidden = forbidden_of(std::array{same.c_str(), another.c_str(), none.c_str()});
    return forbidden == another ? "" : "forbidden: " + forbidden;
  });
  EXPECT_EQ(failed, "");
}

}  // namespace
}  // namespace lrpc::directory::test
