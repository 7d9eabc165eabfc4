// Which local users may call other hosts: processes of other users ask a running lrpc-netd.
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "two_machines.h"

namespace lrpc::netd::test {
namespace {

constexpr uid_t kUser = 54321;  // needs no entry in /etc/passwd
constexpr gid_t kGroup = 54322;

class OtherUsers : public TwoMachines {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
    TwoMachines::SetUp();
    if (IsSkipped()) return;
    share_key();
    there->start_with_keys({"--export", "conformance"});
    // Both belong to the test and are closed to other users. Opening them lets the tests see the answer of lrpc-netd.
    ASSERT_EQ(::chmod(here->file("").c_str(), 0755), 0);
    ASSERT_EQ(::chmod(here->socket().c_str(), 0666), 0);
  }
  /// The error that a process of kUser and kGroup gets when it imports and calls.
  [[nodiscard]] Errc ask(const std::string& name = "conformance@10.7.0.2") const {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgroups(0, nullptr) != 0 || ::setresgid(kGroup, kGroup, kGroup) != 0 ||
          ::setresuid(kUser, kUser, kUser) != 0)
        ::_exit(255);
      auto client = import_patiently(name);
      Errc told = client.code();
      if (client) {
        const auto sum = client->Add(20, 22);
        told = sum && *sum != 42 ? Errc::bad_message : sum.code();
      } else {
        std::fprintf(stderr, "told: %s\n", client.error().message().c_str());
      }
      ::_exit(static_cast<int>(told));
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 255) << status;
    return static_cast<Errc>(WEXITSTATUS(status));
  }
};

TEST_F(OtherUsers, are_refused_where_nobody_has_allowed_them) {
  const Process server = start_server();
  here->start_with_keys();
  EXPECT_EQ(ask(), Errc::not_permitted);
  EXPECT_TRUE(import_patiently()) << "root may";
}

TEST_F(OtherUsers, are_refused_where_only_somebody_else_is_allowed) {
  const Process server = start_server();
  here->start_with_keys({"--allow-user", std::to_string(kUser + 1), "--allow-group", std::to_string(kGroup + 1)});
  EXPECT_EQ(ask(), Errc::not_permitted);
}

TEST_F(OtherUsers, call_other_hosts_where_they_are_allowed) {
  const Process server = start_server();
  here->start_with_keys({"--allow-user", std::to_string(kUser)});
  EXPECT_EQ(ask(), Errc::ok);
}

/// A user who may import gets not_supported, because the interface has handles.
TEST_F(OtherUsers, call_sun_rpc_programs_only_where_they_are_allowed_to_call_other_hosts) {
  const std::vector<std::string> program{"--sun-import", "conformance@10.7.0.9:20490=0x20000098"};
  here->start_with_keys(program);
  EXPECT_EQ(ask("conformance@10.7.0.9"), Errc::not_permitted);
  std::vector<std::string> allowed = program;
  allowed.insert(allowed.end(), {"--allow-user", std::to_string(kUser)});
  here->netd() = Process();
  here->start_with_keys(allowed);
  EXPECT_EQ(ask("conformance@10.7.0.9"), Errc::not_supported);
}

TEST_F(OtherUsers, call_other_hosts_where_their_group_is_allowed) {
  const Process server = start_server();
  here->start_with_keys({"--allow-group", std::to_string(kGroup)});
  EXPECT_EQ(ask(), Errc::ok);
}

}  // namespace
}  // namespace lrpc::netd::test
