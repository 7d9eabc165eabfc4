// An etcd that asks who one is: users and passwords, certificates. The real etcd's, not a gateway's that pretends.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <fstream>
#include <optional>
#include <thread>

#include "eventually.h"
#include "guarded_etcd.h"

namespace lrpc::directory::test {
namespace {

using namespace std::chrono_literals;

class EtcdWithUsers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_etcd()) GTEST_SKIP() << *why;
    server.emplace();
    make_users(*server, {});
  }
  [[nodiscard]] EtcdOptions as(const std::string& user, const std::string& password) const {
    EtcdOptions options = server->options();
    options.user = user;
    options.password = password;
    return options;
  }
  std::optional<EtcdServer> server;
};

TEST_F(EtcdWithUsers, serves_the_user_that_may_write_names) {
  Etcd etcd(as(kUser, kPassword));
  const auto lease = etcd.grant(60s);
  ASSERT_TRUE(lease) << lease.error().message();
  const KeyValue entry{"/lrpc/names/a/10.0.0.1", "1"};
  EXPECT_TRUE(etcd.put(std::span(&entry, 1), lease->id));
  EXPECT_EQ(etcd.range("/lrpc/names/a/", 10)->found.size(), 1U);
  EXPECT_EQ(etcd.keep_alive(lease->id)->ttl, 60s);
  EXPECT_EQ(etcd.attached(lease->id).value(), 1U);
  EXPECT_TRUE(etcd.remove(std::span(&entry, 1), lease->id));
  EXPECT_TRUE(etcd.revoke(lease->id));
}

TEST_F(EtcdWithUsers, lets_a_watch_in_that_has_the_token) {
  Etcd etcd(as(kUser, kPassword));
  const auto before = etcd.range("/lrpc/", 10);
  ASSERT_TRUE(before) << before.error().message();
  const KeyValue entry{"/lrpc/a", "1"};
  ASSERT_TRUE(etcd.put(std::span(&entry, 1), etcd.grant(60s)->id));
  bool seen = false;
  const std::atomic<bool> stop = false;
  const Status watched = etcd.watch(
      "/lrpc/", before->revision + 1, 240s, [&](const Changes& changes) { return !(seen = !changes.changes.empty()); },
      stop);
  EXPECT_TRUE(watched) << watched.error().message();
  EXPECT_TRUE(seen);
}

TEST_F(EtcdWithUsers, refuses_others_with_not_permitted) {
  EXPECT_EQ(Etcd(as(kUser, "wrong")).range("/lrpc/", 10).code(), Errc::not_permitted);
  EXPECT_EQ(Etcd(as("nobody", "x")).range("/lrpc/", 10).code(), Errc::not_permitted);
  EXPECT_EQ(Etcd(server->options()).range("/lrpc/", 10).code(), Errc::not_permitted) << "without a user";
  EXPECT_EQ(Etcd(as(kUser, kPassword)).range("/other/", 10).code(), Errc::not_permitted) << "not its keys";
}

TEST_F(EtcdWithUsers, gives_a_new_token_after_it_has_forgotten_the_old_one) {
  Etcd etcd(as(kUser, kPassword));
  ASSERT_TRUE(etcd.range("/lrpc/", 10));
  server->kill();  // simple tokens are in its memory alone
  server->start();
  EXPECT_TRUE(testing_lrpc::eventually([&] { return etcd.range("/lrpc/", 10).has_value(); }));
  const auto lease = etcd.grant(600s);
  ASSERT_TRUE(lease) << lease.error().message();
  const KeyValue entry{"/lrpc/a", "1"};
  ASSERT_TRUE(etcd.put(std::span(&entry, 1), lease->id));
  server->kill();
  server->start();
  const std::atomic<bool> stop = false;
  const Status watched = etcd.watch(
      "/lrpc/", 1, 240s, [](const Changes& changes) { return changes.changes.empty(); }, stop);
  EXPECT_TRUE(watched) << "of a watch, too: " << watched.error().message();
}

TEST(EtcdWithoutUsers, serves_whoever_names_one_all_the_same) {
  if (const auto why = why_no_etcd()) GTEST_SKIP() << *why;
  const EtcdServer server;
  EtcdOptions options = server.options();
  options.user = "lrpc";
  options.password = "p";
  EXPECT_TRUE(Etcd(options).range("/lrpc/", 10));
}

class EtcdWithCertificates : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& why : {why_no_etcd(), Certificates::why_none()})
      if (why) GTEST_SKIP() << *why;
    made.emplace("127.0.0.1");
    server.emplace(made->of_server());
  }
  [[nodiscard]] std::string file(const std::string& name) const { return made->file(name); }
  /// No `authority`: those of the system.
  [[nodiscard]] Status asked(const std::string& authority, const std::string& certificate) const {
    EtcdOptions options = server->options();
    if (!authority.empty()) options.tls.ca = file(authority + ".pem");
    if (!certificate.empty()) options.tls = {options.tls.ca, file(certificate + ".pem"), file(certificate + ".key")};
    const auto range = Etcd(options).range("/lrpc/", 10);
    if (range) return {};
    return range.error();
  }

  std::optional<Certificates> made;
  std::optional<EtcdServer> server;
};

TEST_F(EtcdWithCertificates, is_believed_if_its_authority_has_signed_it_and_serves_whom_that_has_signed) {
  const Status fits = asked("ca", "client");
  EXPECT_TRUE(fits) << fits.error().message();
  EXPECT_EQ(asked("other", "client").code(), Errc::remote_unavailable) << "another etcd, or somebody in between";
  EXPECT_EQ(asked("ca", "").code(), Errc::remote_unavailable) << "it wants a certificate";
  EXPECT_EQ(asked("ca", "stranger").code(), Errc::remote_unavailable);
  EtcdOptions plain = server->options();
  plain.endpoints = {"http" + server->url().substr(5)};
  EXPECT_FALSE(Etcd(plain).range("/lrpc/", 10)) << "without TLS";
}

TEST_F(EtcdWithCertificates, is_not_believed_by_the_word_of_the_systems_authorities_where_another_one_is_named) {
  made->run("mkdir system && cp ca.pem system/ && cp ca.pem system/ca-certificates.crt && openssl rehash system");
  std::optional<Status> by_the_system;
  std::optional<Status> by_another;
  std::thread([&] {  // a thread may have mounts of its own
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(file("system").c_str(), "/etc/ssl/certs", nullptr, MS_BIND, nullptr) != 0)
      return;
    by_the_system = asked("", "client");
    by_another = asked("other", "client");
  })
      .join();
  if (!by_the_system) GTEST_SKIP() << "no mounts of one's own here, or no /etc/ssl/certs";
  if (!*by_the_system) GTEST_SKIP() << "libcurl's authorities are elsewhere: " << by_the_system->error().message();
  EXPECT_EQ(by_another->code(), Errc::remote_unavailable);
}

TEST_F(EtcdWithCertificates, serves_the_daemon_in_its_sandbox_by_certificate_user_and_password) {
  make_users(*server, made->of_client());
  const auto outcome = [&](const std::string& user) {
    std::ofstream(file("directory.toml")) << "directory = \"etcd\"\n[etcd]\nendpoints = [\"" << server->url() << "\"]\n"
                                          << made->settings(user);
    const testing_lrpc::Process lrpcd(
        {LRPCD, "--socket", file("lrpcd.sock"), "--log-level", "off", "--bind-timeout-ms", "240000"});
    const testing_lrpc::Process daemon({LRPC_DIRECTORY, "--config", file("directory.toml"), "--nameserver",
                                        file("lrpcd.sock"), "--log-level", "warning"});
    Error told;
    (void)testing_lrpc::eventually([&] {  // etcd has 3 s for an answer
      const auto client = Conformance::Client::import("nothing@", {.nameserver = file("lrpcd.sock")});
      if (!client) told = client.error();
      return told.code != Errc::remote_unavailable;
    });
    return told;
  };
  const Error heard = outcome(kUser);
  EXPECT_EQ(heard.code, Errc::name_unknown) << heard.message();
  const Error refused = outcome("nobody");
  EXPECT_EQ(refused.code, Errc::not_permitted) << refused.message();
}

}  // namespace
}  // namespace lrpc::directory::test
