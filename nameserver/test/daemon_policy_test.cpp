// A daemon that reads its policy again: what it logs, and which policy is in force, after each SIGHUP.
#include "daemon/daemon_policy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <thread>

#include "daemon/policy_reader.h"
#include "refused_calls.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

/// Waits until more than `before` bytes can be read. Returns their number.
int more_than(int before, int fd) {
  int bytes = 0;
  EXPECT_TRUE(eventually([&] { return ::ioctl(fd, FIONREAD, &bytes) == 0 && bytes > before; }));
  return bytes;
}

TEST(DaemonPolicy, all_that_was_read_is_put_into_force_at_once_and_in_order) {
  const TemporaryDirectory directory;
  const std::string file = directory / "policy.toml";
  const auto write = [&](int rules) {
    std::ofstream out(file);
    for (int i = 0; i < rules; ++i) out << "[[rule]]\nallow = \"import\"\nnames = \"a\"\nusers = \"*\"\n";
  };
  write(1);
  auto policy = DaemonPolicy::open(file, true, ExportRule::own_user);
  ASSERT_TRUE(policy) << policy.error().message();
  std::vector<std::string> said;
  NameserverOptions options;
  options.socket_path = directory / "lrpcd.sock";
  options.log = [&](LogLevel, std::string_view text) { said.emplace_back(text); };
  policy->apply_to(options);
  ASSERT_EQ(options.extra_watches.size(), 2U);
  const auto& signalled = options.extra_watches[0];
  const auto& answered = options.extra_watches[1];
  auto nameserver = Nameserver::open(options);
  ASSERT_TRUE(nameserver) << nameserver.error().message();
  policy->change_policy_of(**nameserver);

  // The loop was busy: two answers arrive before it reads the first.
  said.clear();
  int bytes = 0;
  for (const int rules : {2, 3}) {
    write(rules);
    ASSERT_EQ(::raise(SIGHUP), 0);
    ASSERT_TRUE(signalled.on_readable());
    bytes = more_than(bytes, answered.fd);
  }
  ASSERT_TRUE(answered.on_readable());
  const auto place_of = [&](const char* rules) {
    return std::ranges::find_if(said, [&](const std::string& one) { return one.ends_with(rules); }) - said.begin();
  };
  EXPECT_LT(place_of("2 rules"), place_of("3 rules"));
  EXPECT_LT(place_of("3 rules"), std::ssize(said));
}

TEST(DaemonPolicy, a_link_that_leads_nowhere_is_an_error_and_the_log_says_if_there_is_no_file) {
  const TemporaryDirectory directory;
  const std::string file = directory / "policy.toml";
  ASSERT_EQ(::symlink("nowhere.toml", file.c_str()), 0);
  EXPECT_EQ(DaemonPolicy::open(file, false, ExportRule::own_user).code(), Errc::system_error);
  const std::string folder = directory / "folder";
  ASSERT_EQ(::symlink("nowhere", folder.c_str()), 0);
  EXPECT_EQ(DaemonPolicy::open(folder + "/policy.toml", false, ExportRule::own_user).code(), Errc::system_error);

  ASSERT_EQ(::unlink(file.c_str()), 0);
  auto policy = DaemonPolicy::open(file, false, ExportRule::own_user);
  ASSERT_TRUE(policy) << policy.error().message();
  std::vector<std::string> said;
  NameserverOptions options;
  options.log = [&](LogLevel, std::string_view text) { said.emplace_back(text); };
  policy->apply_to(options);
  EXPECT_EQ(said, std::vector{"there is no " + file + ": everybody may import"});
}

constexpr int kNoChroot = 77;

/// The status of a process with this root directory.
int read_in(const std::string& root, const std::string& file) {
  if (::chroot(root.c_str()) != 0 || ::chdir("/") != 0) return kNoChroot;
  auto reader = PolicyReader::start(file);
  if (!reader || !reader->ask()) return 1;
  for (;;) {
    pollfd answered{reader->fd(), POLLIN, 0};
    if (::poll(&answered, 1, static_cast<int>(kPatience.count())) != 1) return 2;
    const auto answer = reader->take();
    if (!answer) return 3;
    if (*answer) return 0;
  }
}

TEST(PolicyReader, reads_where_there_is_no_dev_null) {
  const TemporaryDirectory root;
  std::ofstream(root / "policy.toml") << "[[rule]]\nallow = \"import\"\nnames = \"a\"\nusers = \"*\"\n";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(read_in(root.path().string(), "/policy.toml"));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoChroot) GTEST_SKIP() << "this process cannot change its root";
  EXPECT_EQ(status, 0);
}

TEST(PolicyReader, that_cannot_be_asked_for_want_of_memory_is_not_said_to_be_gone) {
  auto reader = PolicyReader::start("/nowhere");
  ASSERT_TRUE(reader) << reader.error().message();
  bool refused = false;
  Status asked;
  std::thread([&] {
    refused = testing_lrpc::refuse_calls(SYS_write, ENOBUFS);
    asked = reader->ask();
  }).join();
  if (!refused) GTEST_SKIP() << "no filters of seccomp can be set";
  EXPECT_EQ(asked.code(), Errc::system_error);
  EXPECT_EQ(asked.error().message(),
            "the process that reads the policy could not be asked (No buffer space available): send SIGHUP again");
  EXPECT_TRUE(reader->ask());
}

}  // namespace
}  // namespace lrpc::nameserver::test
