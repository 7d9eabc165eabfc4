// lrpc::sandbox from outside: what it allows, what it forbids, and what it reports. Each test sandboxes a child
// process.
#include "lrpc/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
#include "fixture.h"
#include "lrpc/detail/sandbox/filter.h"
#include "lrpc/detail/sandbox/threads.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/handover.h"

namespace lrpc::sandbox::test {
namespace {

TEST_F(Sandbox, what_it_forbids_can_be_done_outside) {
  const Victim victim;
  // Shows that a refusal inside comes from the sandbox: what is refused outside as well would prove nothing.
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
                      constexpr int kGuardInstall = 102;      // MADV_GUARD_INSTALL; unknown to old kernels
                      if (::madvise(page, 4096, kGuardInstall) != 0 && errno == EPERM) return "a guard of a stack";
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

/// The kernel counts a thread that has been joined for a moment longer: most likely with one processor.
TEST(OnlyThread, is_a_process_that_has_joined_its_others) {
  if (shim::has_thread_sanitizer()) GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
  EXPECT_EQ(in_a_child([]() -> std::string {
              cpu_set_t one;
              CPU_ZERO(&one);
              CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
              if (::sched_setaffinity(0, sizeof one, &one) != 0) return "sched_setaffinity";
              for (int i = 0; i < 2000; ++i) {
                std::thread([] {}).join();
                if (const Status alone = check_only_thread(); !alone) return alone.error().message();
              }
              return {};
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

TEST_F(Sandbox, allows_by_name_what_its_own_rules_refuse_with_an_errno) {
  Options options;
  options.allow = {"openat2"};
  EXPECT_EQ(shut_in(options,
                    []() -> std::string {
                      open_how how{};
                      how.flags = O_PATH;
                      const long opened = ::syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);
                      return opened >= 0 || errno == EACCES ? "" : std::strerror(errno);
                    }),
            "");
}

TEST_F(Sandbox, has_its_whole_filter_whatever_the_limit_of_file_sizes) {
  const auto whole = make_filter({.rules = computing_rules()});
  ASSERT_TRUE(whole) << whole.error().message();
  for (const rlim_t limit : {rlim_t{0}, rlim_t{64}}) {
    EXPECT_EQ(in_a_child([&]() -> std::string {
                const rlimit both{limit, limit};
                if (::setrlimit(RLIMIT_FSIZE, &both) != 0) return "setrlimit";
                const auto filter = make_filter({.rules = computing_rules()});
                if (!filter) return filter.error().message();
                return filter->size() == whole->size() ? "" : "it is cut short";
              }),
              "");
  }
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
              // The filter applies to the thread that existed before.
              if (wrong.empty() && outcome != EPERM) wrong = "the other thread could make a socket";
              return wrong;
            }),
            "");
}

/// A process with an empty root directory, so without /proc, enters the sandbox; `another`: it has a second thread.
/// Returns what is wrong.
std::string enter_without_proc(const std::string& root, bool another) {
  std::atomic<bool> ended{false};
  std::thread other;
  if (another) other = std::thread([&] { ended.wait(false); });
  std::string wrong;
  if (::chroot(root.c_str()) != 0 || ::chdir("/") != 0) wrong = std::string("chroot: ") + std::strerror(errno);
  const Errc code = wrong.empty() ? enter().code() : Errc::ok;
  const bool untouched = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
  if (wrong.empty() && another && (code == Errc::ok || !untouched)) wrong = "the other thread stayed outside";
  // A container's filter may refuse unshare(2). Then a process cannot prove that it has only one thread.
  if (wrong.empty() && !another && code != Errc::ok && code != Errc::not_supported) wrong = describe(code);
  ended = true;
  ended.notify_all();
  if (another) other.join();
  return wrong;
}

TEST_F(Sandbox, refuses_a_process_that_has_threads_already_where_there_is_no_proc_to_count_them) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can change its root directory";
  const Directory empty;
  for (const bool another : {true, false}) {
    const std::string wrong = in_a_child([&] { return enter_without_proc(empty.path().string(), another); });
    if (wrong.starts_with("chroot: ")) GTEST_SKIP() << wrong;
    EXPECT_EQ(wrong, "") << (another ? "with another thread" : "alone");
  }
}

TEST_F(Sandbox, gives_capabilities_up_but_for_those_to_keep) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has capabilities to give up";
  Options options;
  options.keep_capabilities = 1;  // CAP_CHOWN
  EXPECT_EQ(in_a_child([&]() -> std::string {
              // Opened before, because the sandbox forbids opening it later.
              std::ifstream status("/proc/self/status");
              if (const auto entered = enter(options); !entered) return entered.error().message();
              for (std::string line; std::getline(status, line);)
                if (line.starts_with("CapEff:")) return line == "CapEff:\t0000000000000001" ? "" : line;
              return "no line";
            }),
            "");
}

/// The other threads would keep their capabilities.
TEST_F(Sandbox, refuses_to_give_capabilities_up_in_a_process_that_has_threads_already) {
  Options options;
  options.landlock = false;
  options.keep_capabilities = 1;  // CAP_CHOWN
  EXPECT_EQ(in_a_child([&]() -> std::string {
              std::atomic<bool> ended{false};
              std::thread other([&] { ended.wait(false); });
              const auto entered = enter(options);
              const bool untouched = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
              ended = true;
              ended.notify_all();
              other.join();
              if (entered) return "entered";
              if (entered.code() != Errc::invalid_argument) return entered.error().message();
              if (!untouched) return "something was done";
              return entered.error().message().starts_with("capabilities ") ? "" : entered.error().message();
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
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(LRPC_COUNTING_ENDS)
  const std::string said = in_a_child([] { return enter().value().text(); });
  EXPECT_NE(said.find("system calls NOT HELD: not in a build whose runtime"), std::string::npos) << said;
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
