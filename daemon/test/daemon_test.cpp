// What the daemons have in common, as their main() uses it.
#include "lrpc/daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lrpc/detail/shim/system/directory_of.h"
#include "lrpc/detail/shim/system/fd.h"

namespace {

using lrpc::daemon::Options;

/// What parse() says, with the options in `options`.
std::optional<int> parse(Options& options, std::vector<const char*> arguments) {
  lrpc::command_line::Program program("A daemon for tests.", "a-daemon");
  lrpc::daemon::declare(program, options, "at once", "ready");
  arguments.insert(arguments.begin(), "a-daemon");
  return program.parse(static_cast<int>(arguments.size()), arguments.data());
}

TEST(DaemonOptions, are_those_that_the_command_line_gives) {
  Options options;
  EXPECT_EQ(parse(options, {}), std::nullopt);
  EXPECT_EQ(options.sandbox, "best-effort");
  EXPECT_EQ(options.log_level, "info");
  EXPECT_LT(options.ready_fd, 0);
  EXPECT_EQ(parse(options, {"--sandbox=required", "--log-level", "off", "--ready-fd", "7"}), std::nullopt);
  EXPECT_EQ(options.sandbox, "required");
  EXPECT_EQ(options.log_level, "off");
  EXPECT_EQ(options.ready_fd, 7);
}

TEST(DaemonOptions, that_mean_nothing_are_refused) {
  Options options;
  EXPECT_NE(parse(options, {"--sandbox=on"}), std::nullopt);
  EXPECT_NE(parse(options, {"--log-level=loud"}), std::nullopt);
  for (const char* const wrong : {"--ready-fd=-1", "--ready-fd=1", "--ready-fd=2"})
    EXPECT_NE(parse(options, {wrong}), std::nullopt) << wrong;
}

TEST(Daemon, that_is_ready_writes_a_byte_and_closes_the_descriptor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  EXPECT_TRUE(lrpc::daemon::tell_ready({.ready_fd = ends[1]}));
  std::array<char, 2> told{};
  EXPECT_EQ(::read(ends[0], told.data(), told.size()), 1);
  EXPECT_EQ(::read(ends[0], told.data(), told.size()), 0) << "nobody holds the other end";
  ::close(ends[0]);
}

TEST(Daemon, says_at_which_descriptor_it_cannot_tell_that_it_is_ready) {
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const lrpc::Status told = lrpc::daemon::tell_ready({.ready_fd = file});
  EXPECT_EQ(told.error().message(), "--ready-fd: cannot write to descriptor " + std::to_string(file));
  EXPECT_TRUE(lrpc::daemon::tell_ready({})) << "nobody waits";
}

/// In a child process: starts as daemons do, logs, and ends with 0 if all is as the header says.
[[noreturn]] void run_daemon(int asked_for, int inherited) {
  if (!lrpc::daemon::start("a-daemon", {.log_level = "warning", .ready_fd = asked_for})) std::_Exit(2);
  spdlog::info("not this");
  spdlog::warn("but this");
  lrpc::daemon::log_sandbox({});
  const bool signals_are_ignored = ::signal(SIGPIPE, SIG_DFL) == SIG_IGN && ::signal(SIGXFSZ, SIG_DFL) == SIG_IGN;
  const bool right = ::prctl(PR_GET_DUMPABLE) == 0 && signals_are_ignored && ::fcntl(asked_for, F_GETFD) >= 0 &&
                     ::fcntl(inherited, F_GETFD) < 0;
  std::_Exit(right ? 0 : 1);
}

TEST(Daemon, starts_with_what_it_asked_for_and_logs_under_its_name) {
  const int asked_for = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int inherited = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EXIT(run_daemon(asked_for, inherited), testing::ExitedWithCode(0),
              "^[-0-9T:.+]* a-daemon warning: but this\n[-0-9T:.+]* a-daemon warning: sandbox: off\n$");
  ::close(asked_for);
  ::close(inherited);
}

constexpr int kNoChroot = 77;
bool is_good(int status) { return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kNoChroot); }

/// In a child process: the parent has closed all standard streams. `null`: there is a /dev/null.
[[noreturn]] void run_without_streams(int pipe, bool null) {
  char directory[] = "/tmp/lrpc-empty-XXXXXX";
  if (!null && (::mkdtemp(directory) == nullptr || ::chdir(directory) != 0 || ::rmdir(directory) != 0 ||
                ::chroot(".") != 0))  // a removed directory is an empty one
    std::_Exit(kNoChroot);
  for (int stream = 0; stream <= 2; ++stream) ::close(stream);
  const bool started = lrpc::daemon::start("a-daemon", {.ready_fd = pipe}).has_value();
  const int first = ::dup(pipe);  // what the daemon opens for itself
  spdlog::warn("a line that nobody reads");
  std::puts("another one");
  std::_Exit(started && first > 2 ? 0 : 1);
}

TEST(Daemon, opens_nothing_of_its_own_where_its_log_goes_if_its_streams_are_closed) {
  for (const bool null : {true, false}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_EXIT(run_without_streams(ends[1], null), is_good, "") << null;
    ::close(ends[1]);
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "the log went into a descriptor of the daemon's own";
    ::close(ends[0]);
  }
}

/// In a child process: logs more than its log takes, and a line more when something comes on the standard input.
[[noreturn]] void log_to(int log, int input, int ready, int lines) {
  ::dup2(input, STDIN_FILENO);
  ::dup2(log, STDERR_FILENO);
  if (!lrpc::daemon::start("a-daemon", {.ready_fd = ready})) std::_Exit(2);
  for (int line = 0; line < lines / 2; ++line) spdlog::warn("line {}", line);
  for (int line = lines / 2; line < lines; ++line) lrpc::daemon::write_line("line " + std::to_string(line));
  if (!lrpc::daemon::tell_ready({.ready_fd = ready})) std::_Exit(3);
  char more = 0;
  if (::read(STDIN_FILENO, &more, 1) != 1) std::_Exit(4);
  spdlog::warn("the last");
  std::_Exit(0);
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> area{};
  for (ssize_t got = 0; (got = ::read(fd, area.data(), area.size())) > 0;)
    text.append(area.data(), static_cast<std::size_t>(got));
  return text;
}

TEST(Daemon, does_not_wait_for_a_terminal_that_takes_nothing) {
  const lrpc::UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  ASSERT_EQ(::grantpt(terminal.get()), 0);
  ASSERT_EQ(::unlockpt(terminal.get()), 0);
  const lrpc::UniqueFd log(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(log);
  std::array<int, 2> input{};
  std::array<int, 2> ready{};
  for (auto* const pipe : {&input, &ready}) ASSERT_EQ(::pipe2(pipe->data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) log_to(log.get(), input[0], ready[1], 10'000);
  pollfd waits{ready[0], POLLIN, 0};
  constexpr int kLongest = 60'000;
  EXPECT_EQ(::poll(&waits, 1, kLongest), 1) << "it waits";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const auto& pipe : {input, ready})
    for (const int end : pipe) ::close(end);
}

TEST(Daemon, does_not_wait_for_whoever_reads_its_log) {
  constexpr int kLines = 10'000;
  constexpr int kLongest = 60'000;
  std::array<int, 2> log{};
  std::array<int, 2> input{};
  std::array<int, 2> ready{};
  for (auto* const pipe : {&log, &input, &ready}) ASSERT_EQ(::pipe2(pipe->data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) log_to(log[1], input[0], ready[1], kLines);
  for (const int end : {log[1], input[0], ready[1]}) ::close(end);
  pollfd waits{ready[0], POLLIN, 0};
  if (::poll(&waits, 1, kLongest) != 1) ::kill(child, SIGKILL);  // it waits for this process
  ::fcntl(log[0], F_SETFL, O_NONBLOCK);
  std::string text = read_all(log[0]);
  ::fcntl(log[0], F_SETFL, 0);
  EXPECT_EQ(::write(input[1], "x", 1), 1);
  text += read_all(log[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (const int end : {log[0], input[1], ready[0]}) ::close(end);

  std::istringstream lines(text);
  int written = 0;
  std::string line;
  while (std::getline(lines, line) && line.find("left out") == std::string::npos)
    EXPECT_TRUE(line.ends_with("line " + std::to_string(written++))) << line;
  EXPECT_GT(written, 0);
  EXPECT_EQ(line, "daemon_test: " + std::to_string(kLines - written) +
                      " lines left out: the standard error did not take them");
  std::getline(lines, line);
  EXPECT_TRUE(line.ends_with("a-daemon warning: the last")) << line;
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

/// In a child process: what its libraries say, of what a peer has made fail, goes to the standard error, too.
[[noreturn]] void let_others_write_to(int log) {
  ::dup2(log, STDERR_FILENO);
  if (!lrpc::daemon::start("a-daemon", {})) std::_Exit(2);
  ::alarm(60);  // it waits
  for (int line = 0; line < 10'000; ++line) std::fprintf(stderr, "lrpc: an exception escaped a procedure\n");
  std::_Exit(0);
}

TEST(Daemon, does_not_wait_when_a_library_of_its_own_writes) {
  std::array<int, 2> log{};
  ASSERT_EQ(::pipe2(log.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) let_others_write_to(log[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(::fcntl(log[1], F_GETFL) & O_NONBLOCK, 0) << "that of others waits as before";
  for (const int end : log) ::close(end);
}

/// In a child process: its file is full for a while.
[[noreturn]] void log_into_full_file(int file) {
  ::dup2(file, STDERR_FILENO);
  if (!lrpc::daemon::start("a-daemon", {})) std::_Exit(2);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit full{100, limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  for (int line = 0; line < 3; ++line) lrpc::daemon::write_line(std::string(59, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &limit);
  lrpc::daemon::write_line("the last");
  std::_Exit(0);
}

TEST(Daemon, goes_on_with_its_log_when_there_is_room_again) {
  const int file = ::memfd_create("log", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  const pid_t child = ::fork();
  if (child == 0) log_into_full_file(file);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::lseek(file, 0, SEEK_SET);
  EXPECT_EQ(read_all(file), std::string(59, 'x') + "\n" + std::string(40, 'x') +
                                "\ndaemon_test: 2 lines left out: the standard error did not take them\nthe last\n");
  ::close(file);
}

/// In a child process: waits for another process, and is told to end.
[[noreturn]] void wait_and_end(int signal) {
  if (!lrpc::daemon::start("a-daemon", {})) std::_Exit(2);
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, signal);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  ::raise(signal);
  (void)lrpc::daemon::do_unless_told_to_end([]() -> lrpc::Status {
    for (;;) ::pause();
  });
  std::_Exit(1);
}

TEST(Daemon, that_is_told_to_end_does_not_wait_for_another_process) {
  for (const int signal : {SIGTERM, SIGINT})
    EXPECT_EXIT(wait_and_end(signal), testing::ExitedWithCode(0), "a-daemon info: stops\n$");
  const lrpc::Status refused = lrpc::daemon::do_unless_told_to_end([] { return lrpc::Status(lrpc::Errc::timed_out); });
  EXPECT_EQ(refused.code(), lrpc::Errc::timed_out);
  EXPECT_TRUE(lrpc::daemon::do_unless_told_to_end([] { return lrpc::Status(); }));
}

/// In a child process: no thread can be started, because none has room for its stack.
[[noreturn]] void do_without_threads() {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 50);
  ::pthread_setattr_default_np(&attributes);
  const lrpc::Status done = lrpc::daemon::do_unless_told_to_end([] { return lrpc::Status(); });
  if (done) std::_Exit(2);
  std::fputs(done.error().message().c_str(), stderr);
  std::_Exit(1);
}

TEST(Daemon, says_that_it_lacks_a_thread) {
  EXPECT_EXIT(do_without_threads(), testing::ExitedWithCode(1), "pthread_create: Resource temporarily unavailable");
}

TEST(Daemon, does_not_start_if_nobody_can_wait_for_it_at_the_descriptor_that_it_is_given) {
  const int free = ::dup(0);
  ::close(free);
  const lrpc::Status started = lrpc::daemon::start("a-daemon", {.ready_fd = free});
  EXPECT_EQ(started.error().message(), "--ready-fd: descriptor " + std::to_string(free) + " is not open");
}

TEST(DirectoryOf, a_path_is_all_before_its_last_slash) {
  EXPECT_EQ(lrpc::shim::directory_of("/run/lrpc/lrpcd.sock"), "/run/lrpc");
  EXPECT_EQ(lrpc::shim::directory_of("here/a"), "here");
  EXPECT_EQ(lrpc::shim::directory_of("/a"), "/");
  EXPECT_EQ(lrpc::shim::directory_of("a"), ".");
}

TEST(DirectoryOf, a_file_to_which_a_link_leads_lies_elsewhere) {
  namespace fs = std::filesystem;
  std::string here = "/tmp/lrpc-links.XXXXXX";
  ASSERT_NE(::mkdtemp(here.data()), nullptr);
  fs::create_directories(here + "/archive/one");
  std::ofstream(here + "/archive/one/key") << "x";
  fs::create_symlink("archive/one/key", here + "/key");
  fs::create_symlink("key", here + "/again");
  fs::create_symlink("nowhere/key", here + "/broken");
  using Directories = std::vector<std::string>;
  const std::string there = fs::canonical(here).string() + "/archive/one";
  EXPECT_EQ(lrpc::shim::directories_of({here + "/key"}), (Directories{here, there}));
  EXPECT_EQ(lrpc::shim::directories_of({here + "/again"}), (Directories{here, there}));
  EXPECT_EQ(lrpc::shim::directories_of({here + "/broken"}), Directories{here});
  EXPECT_EQ(lrpc::shim::directories_of({there + "/key"}), Directories{there});
  EXPECT_EQ(lrpc::shim::directories_of({here + "/none"}), Directories{here});
  EXPECT_EQ(lrpc::shim::directories_of({"", "/etc/a", here + "/key"}), (Directories{"/etc", here, there}));
  fs::remove_all(here);
}

}  // namespace
