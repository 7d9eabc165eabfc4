// lrpcd as a process.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <list>

#include "daemon.h"
#include "lrpc/detail/shim/binder/allocator_page.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

/// How often the threads of a process have gone to sleep.
long sleeps(pid_t pid) {
  constexpr std::string_view kField = "voluntary_ctxt_switches:";
  long sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(kField)) sum += std::stol(line.substr(kField.size()));
  }
  return sum;
}

bool exists(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

TEST(Lrpcd, it_says_when_it_is_ready_serves_and_ends_cleanly_on_sigterm_and_sigint) {
  TemporaryDirectory directory;
  const std::string path = directory / "lrpcd.sock";
  for (const int signal : {SIGTERM, SIGINT}) {
    Daemon daemon({"--socket", path});
    ASSERT_TRUE(daemon.ready());
    {
      TestPeer server(path);
      EXPECT_NE(server.export_name("files"), 0U);
      TestPeer client(path);
      client.import("files");
      EXPECT_TRUE(server.answer_bind());
      EXPECT_TRUE(client.next_as<shim::Bound>());
      EXPECT_EQ(daemon.end(signal), 0) << daemon.output;
      EXPECT_TRUE(client.hung_up_on());
    }
    EXPECT_FALSE(exists(path));
    EXPECT_NE(daemon.output.find("listens on " + path), std::string::npos) << daemon.output;
    EXPECT_NE(daemon.output.find("exports 'files' (Files 1.0)"), std::string::npos) << daemon.output;
  }
}

TEST(Lrpcd, it_runs_on_the_back_end_it_is_told) {
  TemporaryDirectory directory;
  Daemon daemon({"--socket", directory / "s", "--backend", "epoll", "--log-level", "off", "--mode", "640"});
  ASSERT_TRUE(daemon.ready());
  struct stat found {};
  ASSERT_EQ(::stat((directory / "s").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0640U);
  EXPECT_EQ(daemon.end(SIGTERM), 0);
  EXPECT_NE(daemon.output.find("(epoll)"), std::string::npos) << daemon.output;
}

TEST(Lrpcd, a_killed_daemons_socket_is_replaced) {
  TemporaryDirectory directory;
  const std::string path = directory / "lrpcd.sock";
  Daemon killed({"--socket", path});
  ASSERT_TRUE(killed.ready());
  EXPECT_EQ(killed.end(SIGKILL), -SIGKILL);
  EXPECT_TRUE(exists(path));
  Daemon next({"--socket", path});
  EXPECT_TRUE(next.ready());
  EXPECT_EQ(next.end(SIGTERM), 0) << next.output;
}

TEST(Lrpcd, one_that_is_started_while_the_old_one_dies_takes_its_place) {
  TemporaryDirectory directory;
  const std::string path = directory / "lrpcd.sock";
  std::vector<std::unique_ptr<Daemon>> daemons;
  for (int i = 0; i < 8; ++i) {
    if (i > 0) daemons.back()->signal(SIGKILL);  // without waiting for its end
    const auto began = std::chrono::steady_clock::now();
    daemons.push_back(std::make_unique<Daemon>(std::vector<std::string>{"--socket", path}));
    if (daemons.back()->ready()) continue;
    EXPECT_EQ(daemons.back()->end(0), 1);
    ASSERT_GE(std::chrono::steady_clock::now() - began, std::chrono::seconds(2)) << daemons.back()->output;
    --i;  // the machine stood still for longer than a dying daemon is waited for: repeat
    daemons.pop_back();
  }
  TestPeer client(path);
  EXPECT_TRUE(client.is_served());
}

/// The signal is pending for the daemon from its start: the test blocks it, and a child inherits the mask.
TEST(Lrpcd, it_ends_at_once_by_sigterm_while_it_waits_for_another_ones_lock) {
  TemporaryDirectory directory;
  const UniqueFd locked(::open((directory / "s.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(locked.get(), LOCK_EX), 0);
  sigset_t stopping;
  sigset_t before;
  ::sigemptyset(&stopping);
  ::sigaddset(&stopping, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &stopping, &before), 0);
  for (;;) {
    const auto began = std::chrono::steady_clock::now();
    Daemon daemon({"--socket", directory / "s"}, false);
    const int status = daemon.end(SIGTERM);
    // The machine stood still, so the daemon gave up waiting before it got the signal: repeat.
    if (status == 1 && std::chrono::steady_clock::now() - began >= std::chrono::seconds(2)) continue;
    EXPECT_EQ(status, 0) << daemon.output;
    break;
  }
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_FALSE(exists(directory / "s"));
}

TEST(Lrpcd, a_second_daemon_on_the_same_path_refuses_and_names_the_first) {
  TemporaryDirectory directory;
  const std::string path = directory / "lrpcd.sock";
  Daemon first({"--socket", path});
  ASSERT_TRUE(first.ready());
  Daemon second({"--socket", path});
  EXPECT_FALSE(second.ready());
  EXPECT_EQ(second.end(0), 1);
  EXPECT_NE(second.output.find("already listens on " + path), std::string::npos) << second.output;
  EXPECT_NE(second.output.find("process " + std::to_string(first.pid())), std::string::npos) << second.output;
  TestPeer client(path);
  EXPECT_TRUE(client.is_served());
}

TEST(Lrpcd, of_many_daemons_started_at_once_exactly_one_serves) {
  TemporaryDirectory directory;
  const std::string path = directory / "lrpcd.sock";
  Daemon killed({"--socket", path});  // so that all of them find a dead socket
  ASSERT_TRUE(killed.ready());
  killed.end(SIGKILL);
  std::vector<std::unique_ptr<Daemon>> daemons;
  for (int i = 0; i < 5; ++i) daemons.push_back(std::make_unique<Daemon>(std::vector<std::string>{"--socket", path}));
  int serving = 0;
  for (auto& daemon : daemons) {
    if (daemon->ready()) ++serving;
  }
  EXPECT_EQ(serving, 1);
  TestPeer client(path);
  EXPECT_TRUE(client.is_served());
}

TEST(Lrpcd, nobody_can_look_into_it) {
  TemporaryDirectory directory;
  Daemon daemon({"--socket", directory / "s"});
  ASSERT_TRUE(daemon.ready());
  struct stat found {};
  // The /proc files of a process that is not dumpable belong to root.
  ASSERT_EQ(::stat(("/proc/" + std::to_string(daemon.pid()) + "/mem").c_str(), &found), 0);
  EXPECT_EQ(found.st_uid, 0U);
}

/// A line of /proc/PID/status.
std::string status_of(pid_t pid, const std::string& field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":\t")) return line.substr(field.size() + 2);
  }
  return "?";
}

TEST(Lrpcd, it_shuts_itself_in_unless_it_is_told_not_to) {
  TemporaryDirectory directory;
  for (const char* const backend : {"auto", "epoll"}) {
    Daemon daemon({"--socket", directory / "s", "--backend", backend});
    ASSERT_TRUE(daemon.ready());
    EXPECT_EQ(status_of(daemon.pid(), "NoNewPrivs"), "1");
    EXPECT_EQ(status_of(daemon.pid(), "CapEff"), "0000000000000000");
    const std::string filtered = status_of(daemon.pid(), "Seccomp");
    TestPeer client(directory / "s");
    EXPECT_TRUE(client.is_served());
    EXPECT_EQ(daemon.end(SIGTERM), 0) << daemon.output;
    EXPECT_NE(daemon.output.find("sandbox: privileges: "), std::string::npos) << daemon.output;
    const bool refused = daemon.output.find("system calls NOT HELD") != std::string::npos;
    EXPECT_EQ(filtered, refused ? "0" : "2") << daemon.output;
    EXPECT_FALSE(exists(directory / "s"));
  }
  Daemon open({"--socket", directory / "s", "--sandbox", "off"});
  ASSERT_TRUE(open.ready());
  EXPECT_EQ(status_of(open.pid(), "Seccomp"), status_of(::getpid(), "Seccomp"));
  EXPECT_EQ(open.end(SIGTERM), 0);
  EXPECT_NE(open.output.find("sandbox: off"), std::string::npos) << open.output;
}

TEST(Lrpcd, it_does_not_serve_where_a_sandbox_that_is_required_cannot_be_had) {
  TemporaryDirectory directory;
  Daemon daemon({"--socket", directory / "s", "--sandbox", "required"});
  const bool served = daemon.ready();
  EXPECT_EQ(daemon.end(served ? SIGTERM : 0), served ? 0 : 1) << daemon.output;
  EXPECT_EQ(daemon.output.find("NOT HELD: ") == std::string::npos ||
                daemon.output.find("the sandbox is not whole") == std::string::npos,
            served)
      << daemon.output;
}

/// Applies to the same user's processes, and to root's without the capability. So the test runs as another user.
TEST(Lrpcd, nobody_of_its_user_can_trace_it) {
  constexpr uid_t kUser = 54321;
  TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0) {
      if (::chown((directory / ".").c_str(), kUser, kUser) != 0 || ::setresgid(kUser, kUser, kUser) != 0 ||
          ::setresuid(kUser, kUser, kUser) != 0)
        ::_exit(2);
    }
    Daemon daemon({"--socket", directory / "s", "--log-level", "off"});
    if (!daemon.ready()) ::_exit(77);  // that user may not execute the file
    if (::ptrace(PTRACE_SEIZE, daemon.pid(), nullptr, nullptr) == 0 || errno != EPERM) ::_exit(3);
    char byte = 0;
    const iovec here{&byte, 1};
    const iovec there{&byte, 1};
    if (::process_vm_readv(daemon.pid(), &here, 1, &there, 1, 0) >= 0 || errno != EPERM) ::_exit(4);
    const std::string memory = "/proc/" + std::to_string(daemon.pid()) + "/mem";
    if (::open(memory.c_str(), O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES) ::_exit(5);
    const std::string fds = "/proc/" + std::to_string(daemon.pid()) + "/fd";
    if (::open(fds.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY) >= 0 || errno != EACCES) ::_exit(6);
    ::_exit(daemon.end(SIGTERM) == 0 ? 0 : 7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "another user cannot execute " << LRPCD_PATH;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// In a child, because a hard limit cannot be raised again.
TEST(Lrpcd, turns_peers_away_before_it_is_out_of_descriptors) {
  TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit few{256, 256};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(2);
    Daemon daemon({"--socket", directory / "s", "--log-level", "off"});
    if (!daemon.ready()) ::_exit(3);
    std::list<UniqueFd> peers;
    for (;;) {
      auto peer = shim::connect_nameserver(directory / "s");
      if (!peer) ::_exit(4);
      const UniqueFd& socket = peers.emplace_back(*std::move(peer));
      (void)shim::send_message(socket.get(), {1, shim::ListRequest{}, {}, {}});
      const auto answer = shim::receive_message(socket.get(), kPatience);
      if (!answer || !*answer) ::_exit(5);
      if (std::holds_alternative<shim::Listed>((*answer)->body)) continue;
      const auto* const failed = std::get_if<shim::Failed>(&(*answer)->body);
      const bool refused = failed != nullptr && failed->code == Errc::limit_reached && peers.size() > 32;
      peers.clear();
      ::_exit(refused && daemon.end(SIGTERM) == 0 ? 0 : 6);
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// In a child, because a hard limit cannot be raised again.
TEST(Lrpcd, warns_at_its_start_if_it_may_open_so_few_files_that_few_clients_will_find_room) {
  TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit few{100, 100};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(2);
    Daemon daemon({"--socket", directory / "s"});
    const bool warned = daemon.says("at most 4 connections at a time") && daemon.says("no more than 100 open files");
    ::_exit(warned && daemon.ready() && daemon.end(SIGTERM) == 0 ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// In a child, because a hard limit cannot be raised again.
TEST(Lrpcd, a_region_beyond_the_limit_of_files_sizes_fails_an_import_and_not_lrpcd) {
  TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small{1U << 20, 1U << 20};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(2);
    Daemon daemon({"--socket", directory / "s", "--log-level", "off"});
    if (!daemon.ready()) ::_exit(3);
    TestPeer server(directory / "s");
    server.ask(shim::ExportRequest{"large", kFiles, {{64, 1U << 20, 8}}, ""});
    TestPeer client(directory / "s");
    if (!server.next_as<shim::Exported>()) ::_exit(4);
    client.import("large");
    if (client.next_failure() != Errc::limit_reached) ::_exit(5);
    ::_exit(client.is_served() && daemon.end(SIGTERM) == 0 ? 0 : 6);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Lrpcd, it_uses_no_processor_while_no_server_is_active_even_after_one_was) {
  TemporaryDirectory directory;
  Daemon daemon({"--socket", directory / "s", "--log-level", "off"});
  ASSERT_TRUE(daemon.ready());
  TestPeer server(directory / "s");
  server.export_name("files");
  EXPECT_TRUE(server.is_served());
  ASSERT_TRUE(server.page);
  shim::AllocatorPageMapping page;
  ASSERT_TRUE(page.put(std::move(server.page)));
  const auto asleep = [&] { return (page->ruling.word.load() & shim::AllocatorRuling::kAsleep) != 0; };
  EXPECT_TRUE(asleep());
  const std::uint32_t epoch = page->ruling.epoch.load();
  server.ask(shim::WakeAllocator{});
  EXPECT_TRUE(eventually([&] { return page->ruling.epoch.load() != epoch; })) << "it has been awake";
  EXPECT_TRUE(eventually(asleep));
  // Repeated: a machine that stood still may wake all threads when it goes on.
  EXPECT_TRUE(eventually([&] {
    const long before = sleeps(daemon.pid());
    std::this_thread::sleep_for(milliseconds(300));
    return sleeps(daemon.pid()) - before <= 2;
  }));
  EXPECT_TRUE(asleep());
}

TEST(Lrpcd, it_says_once_how_it_sees_idle_processors) {
  TemporaryDirectory directory;
  Daemon daemon({"--socket", directory / "s"});
  ASSERT_TRUE(daemon.ready());
  EXPECT_EQ(daemon.end(SIGTERM), 0);
  const std::size_t said = daemon.output.find("idle processors are ");
  ASSERT_NE(said, std::string::npos) << daemon.output;
  EXPECT_EQ(daemon.output.find("idle processors are ", said + 1), std::string::npos) << daemon.output;
  Daemon without({"--socket", directory / "s", "--ebpf", "off", "--allocator", "off"});
  ASSERT_TRUE(without.ready());
  EXPECT_EQ(without.end(SIGTERM), 0);
  EXPECT_EQ(without.output.find("idle processors are "), std::string::npos) << without.output;
}

TEST(Lrpcd, a_user_who_may_not_listen_at_the_systems_socket_is_told_how_to_name_another) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kUser = 54321;
    if (::geteuid() == 0 && (::setresgid(kUser, kUser, kUser) != 0 || ::setresuid(kUser, kUser, kUser) != 0))
      ::_exit(2);
    ::unsetenv("LRPC_SOCKET");
    ::unsetenv("XDG_RUNTIME_DIR");
    Daemon daemon({"--log-level", "off"});
    if (daemon.ready()) ::_exit(77);  // this user is allowed to
    const int status = daemon.end(0);
    if (status == 127) ::_exit(77);  // that user may not execute the file
    ::_exit(status == 1 && daemon.output.find("name a socket of your own: --socket") != std::string::npos ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP();
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Lrpcd, wrong_options_are_explained) {
  for (const auto& wrong : std::vector<std::vector<std::string>>{{"--backend", "kqueue"},
                                                                 {"--mode", "888"},
                                                                 {"--socket", ""},
                                                                 {"--policy", ""},
                                                                 {"--check-policy", ""},
                                                                 {"--log-level", "loud"},
                                                                 {"--ebpf", "please"},
                                                                 {"--sandbox", "perhaps"},
                                                                 {"--allocator", "no"},
                                                                 {"--max-region-bytes", "0"},
                                                                 {"--nonsense"}}) {
    Daemon daemon(wrong, false);
    EXPECT_NE(daemon.end(0), 0) << wrong.front();
    EXPECT_NE(daemon.output.find(wrong.front()), std::string::npos) << daemon.output;
  }
  Daemon version({"--version"}, false);
  EXPECT_EQ(version.end(0), 0);
  EXPECT_EQ(version.output.substr(0, 6), "lrpcd ");
}

}  // namespace
}  // namespace lrpc::nameserver::test
