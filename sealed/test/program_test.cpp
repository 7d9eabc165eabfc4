// Which programs can run sealed, and which errors are found before a program is started.
#include "program.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "child.h"
#include "eventually.h"
#include "fork_as.h"
#include "launcher.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "refused_calls.h"
#include "temporary_directory.h"

namespace lrpc::sealed {
namespace {

using testing_lrpc::TemporaryDirectory;

/// Writes a file with these bytes, and returns its path.
std::string write(const std::string& path, const std::string& bytes, mode_t mode = 0700) {
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  return path;
}

/// The header of an executable without segments: it needs no interpreter.
std::string static_program() {
  ElfW(Ehdr) header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_phentsize = sizeof(ElfW(Phdr));
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

bool same_file(int fd, const std::string& path) {
  struct stat one {};
  struct stat other {};
  return ::fstat(fd, &one) == 0 && ::stat(path.c_str(), &other) == 0 && one.st_ino == other.st_ino;
}

class Programs : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("PATH");
    path_ = path != nullptr ? path : "";
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }
  /// Why the program cannot run sealed.
  static std::string why_not(const std::string& name) {
    const auto opened = open_program(name);
    if (opened) return "it can";
    EXPECT_EQ(opened.code(), Errc::invalid_argument);
    EXPECT_NE(opened.error().message().find(name), std::string::npos) << "the text names it";
    return opened.error().message();
  }
  const TemporaryDirectory here_;

 private:
  std::string path_;
};

TEST_F(Programs, a_static_executable_can_run_sealed) {
  const std::string program = write(here_ / "static", static_program());
  const auto opened = open_program(program);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_TRUE(same_file(opened->get(), program));
}

TEST_F(Programs, a_dynamic_executable_is_refused_and_told_how_to_link) {
  EXPECT_NE(why_not("/proc/self/exe").find("linked dynamically"), std::string::npos);
}

TEST_F(Programs, what_is_no_executable_of_this_processor_is_refused) {
  EXPECT_NE(why_not(write(here_ / "script", "#!/bin/sh\nexit 0\n")).find("no program"), std::string::npos);
  EXPECT_NE(why_not(write(here_ / "empty", "")).find("no program"), std::string::npos);
  EXPECT_NE(why_not(write(here_ / "cut", static_program().substr(0, 20))).find("no program"), std::string::npos);
  std::string of_another = static_program();
  reinterpret_cast<ElfW(Ehdr)*>(of_another.data())->e_phentsize = 1;
  EXPECT_NE(why_not(write(here_ / "another", of_another)).find("no program"), std::string::npos);
}

TEST_F(Programs, what_cannot_be_executed_is_refused_and_a_fifo_not_waited_for) {
  EXPECT_NE(why_not(here_ / "absent").find("No such file"), std::string::npos);
  EXPECT_NE(why_not(here_.path().string()).find("Permission denied"), std::string::npos);
  EXPECT_NE(why_not(write(here_ / "data", static_program(), 0600)).find("Permission denied"), std::string::npos);
  ASSERT_EQ(::mkfifo((here_ / "fifo").c_str(), 0700), 0);
  EXPECT_NE(why_not(here_ / "fifo").find("Permission denied"), std::string::npos);
}

TEST_F(Programs, a_name_without_a_slash_is_the_first_executable_in_the_path) {
  for (const char* directory : {"a", "b", "c"}) std::filesystem::create_directory(here_ / directory);
  write(here_ / "a/program", static_program(), 0600);  // not executable
  const std::string first = write(here_ / "b/program", static_program());
  write(here_ / "c/program", static_program());
  ASSERT_EQ(::setenv("PATH", ((here_ / "a") + ":" + (here_ / "b") + ":" + (here_ / "c")).c_str(), 1), 0);
  const auto opened = open_program("program");
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_TRUE(same_file(opened->get(), first));
  (void)why_not("program-that-is-nowhere");
}

constexpr Pdl kPdl{.interface = {.name = "Test", .major = 1}, .classes = {}, .procedures = {}, .text = {}};

/// The result of the launcher's checks of these options, before it starts anything.
Status prepared(std::vector<std::string> arguments, SealedOptions options) {
  return Launcher(std::move(arguments), std::move(options)).prepare();
}

TEST_F(Programs, a_launcher_refuses_options_without_a_meaning_before_there_is_a_child) {
  const std::vector<std::string> program{write(here_ / "static", static_program())};
  EXPECT_TRUE(prepared(program, {.name = "host", .pdl = &kPdl}));
  EXPECT_EQ(prepared({}, {.name = "host", .pdl = &kPdl}).code(), Errc::invalid_argument);
  for (const char* name : {"", "host@machine", "a/b"})
    EXPECT_EQ(prepared(program, {.name = name, .pdl = &kPdl}).code(), Errc::invalid_argument) << name;
  EXPECT_EQ(prepared({here_ / "absent"}, {.name = "host", .pdl = &kPdl}).code(), Errc::invalid_argument);
  SealedOptions wrong{.name = "host", .timeout = std::chrono::milliseconds(-1), .pdl = &kPdl};
  EXPECT_EQ(prepared(program, std::move(wrong)).code(), Errc::invalid_argument);
  wrong = {.name = "host", .pdl = &kPdl, .allow = {"open_sesame"}};
  EXPECT_EQ(prepared(program, std::move(wrong)).code(), Errc::invalid_argument);
  wrong = {.name = "host", .pdl = &kPdl, .environment = {"=x"}};
  EXPECT_EQ(prepared(program, std::move(wrong)).code(), Errc::invalid_argument);
}

TEST_F(Programs, a_launcher_with_a_private_binding_wants_to_know_the_interface) {
  const std::vector<std::string> program{write(here_ / "static", static_program())};
  for (const Pdl* pdl : {static_cast<const Pdl*>(nullptr), &kPdl}) {
    auto ends = make_socket_pair().value();
    const Status status = prepared(program, {.name = "host", .socket = std::move(ends.second), .pdl = pdl});
    EXPECT_EQ(status.code(), pdl == nullptr ? Errc::invalid_argument : Errc::ok);
  }
}

/// A nameserver whose queue is full: one connection waits in it, and no other is accepted.
class BusyNameserver {
 public:
  BusyNameserver() {
    sockaddr_un address{AF_UNIX, {}};
    path().copy(std::begin(address.sun_path), sizeof address.sun_path - 1);
    const auto* const where = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), where, sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    EXPECT_EQ(::connect(first_.get(), where, sizeof address), 0);
  }
  [[nodiscard]] std::string path() const { return directory_ / "s"; }
  /// Accepts the waiting connection, so that the queue has room for the next one.
  void take_the_first() { taken_.reset(::accept(listener_.get(), nullptr, nullptr)); }

 private:
  const TemporaryDirectory directory_;
  const UniqueFd listener_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  const UniqueFd first_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  UniqueFd taken_;
};

TEST_F(Programs, a_launcher_gives_a_nameserver_up_that_takes_no_connection) {
  BusyNameserver nameserver;
  Launcher launcher({write(here_ / "static", static_program())},
                    {.name = "host", .nameserver = nameserver.path(), .pdl = &kPdl});
  ASSERT_TRUE(launcher.prepare());
  auto started = std::async(std::launch::async, [&] { return launcher.start(); });
  if (started.wait_for(testing_lrpc::kPatience) != std::future_status::ready) {
    ADD_FAILURE() << "it waits for ever";
    nameserver.take_the_first();
  }
  const Status status = started.get();
  EXPECT_EQ(status.code(), Errc::no_nameserver) << status.error().message();
}

/// The copy keeps the child's end of the socket open, so the launcher reads no end of file.
TEST_F(Programs, a_launcher_sees_that_its_child_was_killed_although_a_fork_child_has_a_copy_of_its_socket) {
  const BusyNameserver nameserver;  // the launcher's child waits for it, and has reported nothing yet
  Launcher launcher({write(here_ / "static", static_program())},
                    {.name = "host", .nameserver = nameserver.path(), .pdl = &kPdl});
  ASSERT_TRUE(launcher.prepare());
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  std::promise<pid_t> thread;
  auto started = std::async(std::launch::async, [&] {
    thread.set_value(::gettid());
    return launcher.start();
  });
  const std::string children = "/proc/self/task/" + std::to_string(thread.get_future().get()) + "/children";
  pid_t child = 0;
  while (child == 0 && started.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
    std::ifstream(children) >> child;  // stays 0 if the kernel does not list children
  if (child != 0) ::kill(child, SIGKILL);
  const bool returned = started.wait_for(testing_lrpc::kPatience) == std::future_status::ready;
  ::kill(holder, SIGKILL);
  EXPECT_EQ(::waitpid(holder, nullptr, 0), holder);
  EXPECT_FALSE(started.get());
  if (child == 0) GTEST_SKIP() << "this kernel does not list the children of a thread";
  EXPECT_TRUE(returned) << "it waited until the copy was gone";
}

bool is_traced(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("TracerPid:")) return line != "TracerPid:\t0";
  return false;
}

/// The test is the private server, and reaps the child while the launcher waits for the server's answer.
TEST_F(Programs, a_launcher_does_nothing_to_a_process_that_has_got_the_number_of_its_child) {
  auto ends = make_socket_pair().value();
  ASSERT_TRUE(shim::ask_for_senders(ends.second.get()));
  Launcher launcher(
      {write(here_ / "static", static_program())},
      {.name = "host", .timeout = testing_lrpc::kPatience, .socket = std::move(ends.first), .pdl = &kPdl});
  ASSERT_TRUE(launcher.prepare());
  auto started = std::async(std::launch::async, [&] { return launcher.start(); });
  const auto request = shim::receive_message(ends.second.get(), testing_lrpc::kPatience);
  ASSERT_TRUE(request && *request && (*request)->sender);
  const pid_t child = (*request)->sender->pid;
  const auto failed = [&] { return started.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
  ASSERT_TRUE(testing_lrpc::eventually([&] { return is_traced(child) || failed(); }));
  if (failed()) GTEST_SKIP() << started.get().error().message();

  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, __WALL), child);
  const pid_t other = testing_lrpc::fork_as(child, testing_lrpc::wait_for_ever);
  ::shutdown(ends.second.get(), SHUT_RDWR);  // the other process has a copy
  EXPECT_EQ(started.get().code(), Errc::peer_gone);
  if (other < 0) GTEST_SKIP() << testing_lrpc::kNoNumber;
  EXPECT_EQ(::waitpid(other, nullptr, WNOHANG), 0) << "it has been killed";
  ::kill(other, SIGKILL);
  EXPECT_TRUE(::waitpid(other, nullptr, 0) == other || errno == ECHILD);
}

TEST(SealedChild, that_lacks_memory_to_connect_turns_to_no_other_nameserver) {
  auto control = make_socket_pair().value();
  ChildPlan plan;
  plan.control = control.second.get();
  plan.launcher = ::getpid();
  plan.nameservers = {"/tmp/users-own", std::string(200, 's')};  // the second is too long for a socket
  const pid_t child = ::fork();
  if (child == 0) {
    if (!testing_lrpc::refuse_calls(SYS_connect, ENOMEM)) ::_exit(0);
    run_child(plan);
  }
  control.second.reset();
  Report report;
  const ssize_t got = shim::receive_packet(control.first.get(), room_of(report));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  if (got == 0) GTEST_SKIP() << "no filters of seccomp can be set";
  ASSERT_EQ(got, static_cast<ssize_t>(sizeof report));
  EXPECT_EQ(report.step, Step::connecting);
  EXPECT_EQ(report.err, ENOMEM) << "it has tried the second";
}

}  // namespace
}  // namespace lrpc::sealed
