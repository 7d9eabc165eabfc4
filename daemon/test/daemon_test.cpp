// What the daemons have in common, as their main() uses it.
#include "lrpc/daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lrpc/shim/system/directory_of.h"

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

/// In a child process: the parent has closed all standard streams.
[[noreturn]] void run_without_streams(int pipe) {
  for (int stream = 0; stream <= 2; ++stream) ::close(stream);
  const bool started = lrpc::daemon::start("a-daemon", {.ready_fd = pipe}).has_value();
  const int first = ::dup(pipe);  // what the daemon opens for itself
  spdlog::warn("a line that nobody reads");
  std::puts("another one");
  std::_Exit(started && first > 2 ? 0 : 1);
}

TEST(Daemon, opens_nothing_of_its_own_where_its_log_goes_if_its_streams_are_closed) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  EXPECT_EXIT(run_without_streams(ends[1]), testing::ExitedWithCode(0), "");
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "the log went into a descriptor of the daemon's own";
  ::close(ends[0]);
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
