// lrpc::sandbox from outside: what is left, what is not, and what is said about it. Each test shuts a child process in.
#include "lrpc/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "attempts.h"
#include "lrpc/shim/system/fd.h"

namespace lrpc::sandbox::test {
namespace {

class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lrpc-sandbox-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Everything below runs where all parts can be had, and says why not elsewhere.
class Sandbox : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = in_a_child([] {
      const auto entered = enter();
      if (!entered) return entered.error().message();
      return entered->complete() ? std::string() : entered->text();
    });
    if (!why.empty()) GTEST_SKIP() << why;
  }
  /// The body in a child that has shut itself in.
  static std::string shut_in(const Options& options, const std::function<std::string()>& body) {
    return in_a_child([&] {
      const auto entered = enter(options);
      return entered ? body() : entered.error().message();
    });
  }
};

TEST_F(Sandbox, what_it_forbids_can_be_done_outside) {
  const Victim victim;
  // So that a refusal inside is the sandbox's: where everything is refused anyway the tests below would show nothing.
  std::vector<Attempt> harmless = forbidden_to_all(victim.pid());
  std::erase_if(harmless, [](const Attempt& one) {
    static const std::vector<std::string> kNames = {"open /etc/hostname",
                                                    "open /",
                                                    "clone of a process",
                                                    "kill",
                                                    "socket TCP",
                                                    "executable memory",
                                                    "memory made executable",
                                                    "socket Unix datagrams",
                                                    "socket Unix raw",
                                                    "socketpair of datagrams",
                                                    "socketpair of datagrams that do not block",
                                                    "socketpair raw"};
    return std::ranges::find(kNames, one.name) == kNames.end();
  });
  EXPECT_EQ(harmless.size(), 12U);
  EXPECT_EQ(in_a_child([&] {
              std::string refused;
              for (const Attempt& attempt : harmless)
                if (attempt.act() != 0) refused += attempt.name + " ";
              return refused;
            }),
            "");
}

TEST_F(Sandbox, takes_files_processes_networks_and_the_kernels_settings_away) {
  const Victim victim;
  EXPECT_EQ(shut_in({}, [&] { return not_refused(forbidden_to_all(victim.pid())); }), "");
}

TEST_F(Sandbox, cannot_be_left_by_entering_a_wider_one) {
  EXPECT_EQ(shut_in({},
                    [] {
                      Options wider;
                      wider.groups.push_back(Group::streams);
                      wider.read_only = {"/"};
                      (void)enter(wider);
                      return not_refused({socket_of("TCP", AF_INET, SOCK_STREAM), opening("/etc/hostname", O_RDONLY)});
                    }),
            "");
}

TEST_F(Sandbox, leaves_threads_memory_and_descriptors) {
  EXPECT_EQ(shut_in({},
                    []() -> std::string {
                      std::atomic<int> ran{0};
                      for (int i = 0; i < 3; ++i) std::thread([&] { ++ran; }).join();
                      if (ran != 3) return "threads";
                      const UniqueFd memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
                      if (!memory || ::ftruncate(memory.get(), 4096) != 0) return "memfd";
                      void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
                      if (page == MAP_FAILED) return "mmap";  // NOLINT: an int in a pointer's clothes
                      if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) return "seals";
                      const UniqueFd event(::eventfd(1, EFD_CLOEXEC));
                      std::uint64_t value = 0;
                      if (::read(event.get(), &value, sizeof value) != sizeof value) return "eventfd";
                      const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
                      if (!pidfd) return "pidfd_open";
                      if (::sched_yield() != 0) return "sched_yield";
                      clockid_t clock{};
                      timespec used{};
                      if (::clock_getcpuclockid(::getppid(), &clock) != 0 || ::clock_gettime(clock, &used) != 0)
                        return "another process's clock";
                      return {};
                    }),
            "");
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

TEST_F(Sandbox, leaves_the_way_to_a_unix_socket_that_is_made_anew) {
  const Directory directory;
  const std::string path = directory / "socket";
  const sockaddr_un address = address_of(path);
  int go[2];
  ASSERT_EQ(::pipe2(go, O_CLOEXEC), 0);
  // The socket appears after the sandbox was entered, as that of an lrpcd that is started again.
  std::thread nameserver([&] {
    char ready = 0;
    if (::read(go[0], &ready, 1) != 1) return;
    const UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    if (::listen(listener.get(), 1) != 0) return;
    const UniqueFd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    (void)!::write(peer.get(), "x", 1);
  });
  EXPECT_EQ(
      shut_in({},
              [&]() -> std::string {
                if (::write(go[1], "x", 1) != 1) return "pipe";
                const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
                int tries = 0;
                while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
                  if ((errno != ENOENT && errno != ECONNREFUSED) || ++tries > 48'000)
                    return std::string("connect: ") + std::strerror(errno);
                  ::usleep(5000);
                }
                char byte = 0;
                return ::read(socket.get(), &byte, 1) == 1 ? "" : "read";
              }),
      "");
  ::close(go[1]);
  nameserver.join();
  ::close(go[0]);
}

TEST_F(Sandbox, opens_what_is_read_only_for_reading_and_what_is_read_write_for_both) {
  const Directory directory;
  for (const char* const name : {"read", "write", "other"}) {
    std::filesystem::create_directory(directory / name);
    std::ofstream(directory / name + "/file") << "text";
  }
  Options options;
  options.groups.push_back(Group::write_files);
  options.read_only = {directory / "read"};
  options.read_write = {directory / "write"};
  EXPECT_EQ(
      shut_in(options,
              [&]() -> std::string {
                std::string refused = not_refused(
                    {opening(directory / "read/file", O_WRONLY),
                     opening(directory / "read/new", O_WRONLY | O_CREAT),
                     opening(directory / "other/file", O_RDONLY),
                     opening(directory / "other/new", O_RDWR | O_CREAT),
                     opening("/etc/hostname", O_RDONLY),
                     // Not of any file, for which Landlock has no rules; nor by opening it for nothing.
                     {"chmod", [&] { return ::chmod((directory / "other/file").c_str(), 0666) == 0 ? 0 : errno; }},
                     {"chown", [&] { return ::chown((directory / "other/file").c_str(), -1U, -1U) == 0 ? 0 : errno; }},
                     {"utimensat",
                      [&] { return ::utimensat(-1, (directory / "other/file").c_str(), nullptr, 0) == 0 ? 0 : errno; }},
                     {"truncate", [&] { return ::truncate((directory / "other/file").c_str(), 0) == 0 ? 0 : errno; }},
                     opening(directory / "read/file", O_RDONLY | O_TRUNC),
                     opening(directory / "read/file", O_ACCMODE | O_TRUNC),
                     {"execve", [&] { return ::execl((directory / "write/file").c_str(), "file", nullptr), errno; }}});
                if (!refused.empty()) return refused;
                if (opening(directory / "read/file", O_RDONLY).act() != 0) return "reading";
                if (opening(directory / "write/new", O_RDWR | O_CREAT).act() != 0) return "making";
                if (opening(directory / "write/new", O_WRONLY | O_TRUNC).act() != 0) return "truncating";
                if (::rename((directory / "write/new").c_str(), (directory / "write/renamed").c_str()) != 0)
                  return "renaming";
                return ::unlink((directory / "write/renamed").c_str()) == 0 ? "" : "removing";
              }),
      "");
}

TEST_F(Sandbox, only_removes_where_it_may_only_remove) {
  const Directory directory;
  std::filesystem::create_directory(directory / "mine");
  for (const char* const name : {"mine/socket", "other"}) std::ofstream(directory / name) << "text";
  Options options;
  options.groups.push_back(Group::remove_files);
  options.removable_in = {directory / "mine"};
  EXPECT_EQ(
      shut_in(options,
              [&]() -> std::string {
                std::string refused = not_refused(
                    {opening(directory / "mine/socket", O_RDONLY),
                     opening(directory / "mine/new", O_WRONLY | O_CREAT),
                     {"unlink elsewhere", [&] { return ::unlink((directory / "other").c_str()) == 0 ? 0 : errno; }},
                     {"rmdir", [&] { return ::rmdir((directory / "mine").c_str()) == 0 ? 0 : errno; }}});
                if (!refused.empty()) return refused;
                return ::unlink((directory / "mine/socket").c_str()) == 0 ? "" : std::strerror(errno);
              }),
      "");
  EXPECT_TRUE(std::filesystem::exists(directory / "other"));
}

TEST_F(Sandbox, does_not_give_a_file_that_is_put_in_anothers_place) {
  const Directory directory;
  std::ofstream(directory / "file") << "old";
  Options options;
  options.read_only = {directory / "file", directory / "missing"};
  int go[2];
  ASSERT_EQ(::pipe2(go, O_CLOEXEC), 0);
  std::thread replacer([&] {
    char ready = 0;
    if (::read(go[0], &ready, 1) != 1) return;
    std::ofstream(directory / "new") << "new";
    std::filesystem::rename(directory / "new", directory / "file");
    std::ofstream(directory / "missing") << "late";
    std::ofstream(directory / "done") << "x";
  });
  EXPECT_EQ(
      shut_in(options,
              [&]() -> std::string {
                if (opening(directory / "file", O_RDONLY).act() != 0) return "reading";
                if (::write(go[1], "x", 1) != 1) return "pipe";
                struct stat found {};
                for (int i = 0; ::stat((directory / "done").c_str(), &found) != 0 && i < 48'000; ++i) ::usleep(5000);
                return not_refused({opening(directory / "file", O_RDONLY), opening(directory / "missing", O_RDONLY)});
              }),
      "");
  ::close(go[1]);
  replacer.join();
  ::close(go[0]);
}

TEST_F(Sandbox, connects_and_binds_tcp_to_named_ports_only) {
  if (landlock_abi() < 4) GTEST_SKIP() << "Landlock knows no TCP before ABI 4 (Linux 6.7)";
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto attempt = [&](bool connecting) {
    return Attempt{
        connecting ? "connect" : "bind", [&address, connecting] {
          const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
          sockaddr_in to = address;
          if (!connecting) to.sin_port = 0;  // any
          const auto* const at = reinterpret_cast<const sockaddr*>(&to);
          return (connecting ? ::connect(socket.get(), at, sizeof to) : ::bind(socket.get(), at, sizeof to)) == 0
                     ? 0
                     : errno;
        }};
  };
  // Ways to connect that Landlock does not look at.
  const Attempt sending{"sendto that connects", [&address] {
                          const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
                          return ::sendto(socket.get(), "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL,
                                          reinterpret_cast<const sockaddr*>(&address), sizeof address) == 1
                                     ? 0
                                     : errno;
                        }};
  Options options;
  options.groups.push_back(Group::streams);
  EXPECT_EQ(shut_in(options,
                    [&] {
                      return not_refused({attempt(true), attempt(false), sending,
                                          socket_of("MPTCP", AF_INET, SOCK_STREAM, 262),
                                          socket_of("SCTP", AF_INET6, SOCK_STREAM, IPPROTO_SCTP)});
                    }),
            "");
  options.tcp_connect = {ntohs(address.sin_port)};
  EXPECT_EQ(shut_in(options,
                    [&]() -> std::string {
                      if (const int err = attempt(true).act(); err != 0) return std::strerror(err);
                      return not_refused({attempt(false)});
                    }),
            "");
}

TEST_F(Sandbox, ends_the_process_if_that_is_wanted) {
  Options options;
  options.kill = true;
  EXPECT_EQ(shut_in(options, [] { return std::to_string(::socket(AF_INET, SOCK_STREAM, 0)); }),
            "signal " + std::to_string(SIGSYS));
}

TEST_F(Sandbox, leaves_the_ways_to_end) {
  const std::string aborted = "signal " + std::to_string(SIGABRT);
  const std::string exited = "exit 3";
  for (const Options& options : {Options{}, Options{.groups = {}}}) {
    EXPECT_EQ(shut_in(options, []() -> std::string { ::abort(); }), aborted);
    EXPECT_EQ(shut_in(options, []() -> std::string { ::_exit(3); }), exited);
  }
}

TEST_F(Sandbox, allows_more_system_calls_by_name) {
  Options options;
  options.allow = {"fork", "clone", "wait4", "clone3"};
  EXPECT_EQ(shut_in(options,
                    []() -> std::string {
                      const pid_t child =
                          static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
                      if (child == 0) ::_exit(0);
                      return child > 0 ? "" : std::strerror(errno);
                    }),
            "");
}

TEST_F(Sandbox, does_nothing_if_a_system_call_is_unknown) {
  EXPECT_EQ(in_a_child([]() -> std::string {
              Options options;
              options.allow = {"no_such_call"};
              const auto entered = enter(options);
              if (entered.code() != Errc::invalid_argument) return "no error";
              if (entered.error().message().find("no_such_call") == std::string::npos) return entered.error().message();
              return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? "" : "something was done";
            }),
            "");
}

TEST_F(Sandbox, refuses_a_process_that_has_threads_already_unless_landlock_is_not_wanted) {
  EXPECT_EQ(in_a_child([]() -> std::string {
              std::atomic<int> step{0};
              std::atomic<int> outcome{0};
              std::thread other([&] {
                while (step == 0) step.wait(0);
                outcome = socket_of("TCP", AF_INET, SOCK_STREAM).act();
              });
              std::string wrong;
              if (enter().code() != Errc::invalid_argument) wrong = "entered";
              if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0) wrong = "something was done";
              Options options;
              options.landlock = false;
              options.required = true;
              const auto entered = enter(options);
              if (!entered) wrong = entered.error().message();
              step = 1;
              step.notify_all();
              other.join();
              // The filter is on the thread that was there before.
              if (wrong.empty() && outcome != EPERM) wrong = "the other thread could make a socket";
              return wrong;
            }),
            "");
}

TEST_F(Sandbox, gives_capabilities_up_but_for_those_to_keep) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has capabilities to give up";
  Options options;
  options.keep_capabilities = 1;  // CAP_CHOWN
  EXPECT_EQ(in_a_child([&]() -> std::string {
              // Opened before: the sandbox lets nobody look later.
              std::ifstream status("/proc/self/status");
              if (const auto entered = enter(options); !entered) return entered.error().message();
              for (std::string line; std::getline(status, line);)
                if (line.starts_with("CapEff:")) return line == "CapEff:\t0000000000000001" ? "" : line;
              return "no line";
            }),
            "");
}

TEST_F(Sandbox, says_what_holds_and_which_paths_are_not_there) {
  Options options;
  options.read_only = {"/no/such/place"};
  const std::string said = in_a_child([&] { return enter(options).value().text(); });
  for (const char* const part : {"privileges: ", "memory: ", "files: Landlock (ABI ", "cpu/online",
                                 "not there: /no/such/place", "system calls: "})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos);
}

TEST_F(Sandbox, hides_the_process_from_others_of_its_user) {
  EXPECT_EQ(shut_in({}, [] { return std::string(::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? "" : "dumpable"); }), "");
}

TEST(SandboxInSanitizers, says_that_it_does_not_hold) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const std::string said = in_a_child([] { return enter().value().text(); });
  EXPECT_NE(said.find("system calls NOT HELD: not in a build with a sanitizer"), std::string::npos) << said;
  EXPECT_EQ(in_a_child([] {
              Options options;
              options.required = true;
              return std::to_string(static_cast<int>(enter(options).code()));
            }),
            std::to_string(static_cast<int>(Errc::not_supported)));
#else
  GTEST_SKIP() << "this build has no sanitizer";
#endif
}

}  // namespace
}  // namespace lrpc::sandbox::test
