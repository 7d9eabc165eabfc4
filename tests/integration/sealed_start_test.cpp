// What a sealed program inherits from the process that starts it, and what starting it can meet.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "busy_closers.h"
#include "length.h"
#include "lrpc/detail/shim/call/region.h"
#include "private_answer.h"
#include "slow_to_close.h"
#include "trap_world.h"

namespace testing_lrpc {
namespace {

using lrpc::SealedOptions;
using SealedStart = TrapWorld;

/// Allows core files, in a directory of its own, as far as the hard limit permits.
class CoreFilesAllowed {
 public:
  CoreFilesAllowed() {
    getrlimit(RLIMIT_CORE, &before_);
    const rlimit most{before_.rlim_max, before_.rlim_max};
    setrlimit(RLIMIT_CORE, &most);
    std::filesystem::current_path(directory_.path());
  }
  ~CoreFilesAllowed() {
    std::filesystem::current_path(at_);
    setrlimit(RLIMIT_CORE, &before_);
  }
  CoreFilesAllowed(const CoreFilesAllowed&) = delete;
  CoreFilesAllowed& operator=(const CoreFilesAllowed&) = delete;

  [[nodiscard]] bool by_the_hard_limit() const noexcept { return before_.rlim_max == RLIM_INFINITY; }
  [[nodiscard]] bool some_were_written() const { return !std::filesystem::is_empty(directory_.path()); }

 private:
  const std::filesystem::path at_ = std::filesystem::current_path();
  const TemporaryDirectory directory_;
  rlimit before_{};
};

TEST_F(SealedStart, leaves_a_program_no_core_file) {
  const CoreFilesAllowed allowed;
  if (!allowed.by_the_hard_limit()) GTEST_SKIP() << "the hard limit (RLIMIT_CORE) allows no core files here";
  EXPECT_EQ(run({"core-limit", "host"}), 0);
  EXPECT_EQ(run({"abort", "host"}), -1000 - SIGABRT);
  EXPECT_FALSE(allowed.some_were_written());
}

constexpr int kNotHere = 77;

/// Runs in its own process. Kills a launcher while its program's process waits for the nameserver to accept it, then
/// accepts. Exits with 0 if the program's process ends, with kNotHere if nothing can be started sealed.
[[noreturn]] void kill_a_launcher() {
  const TemporaryDirectory directory;
  sockaddr_un address{AF_UNIX, {}};
  const std::string path = directory.path() / "s";
  path.copy(std::begin(address.sun_path), sizeof address.sun_path - 1);
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  const lrpc::UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const lrpc::UniqueFd first(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), where, sizeof address) != 0 || listen(listener.get(), 0) != 0) std::_Exit(1);
  if (connect(first.get(), where, sizeof address) != 0) std::_Exit(1);  // so the next connection waits

  const pid_t launcher = fork();
  if (launcher == 0) {
    SealedOptions options;
    options.name = "host";
    options.nameserver = path;
    options.pdl = &Conformance::kPdl;
    (void)lrpc::SealedDomain::start({LRPC_TEST_SEALED, "status", "0"}, std::move(options));
    std::_Exit(0);
  }
  pid_t child = 0;
  while (child == 0) {
    if (waitpid(launcher, nullptr, WNOHANG) != 0) std::_Exit(kNotHere);
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(launcher) + "/task"))
      if (child == 0) std::ifstream(thread.path() / "children") >> child;
  }
  const lrpc::UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  const lrpc::UniqueFd accepted(accept(listener.get(), nullptr, nullptr));
  pollfd ended{pidfd.get(), POLLIN, 0};
  const bool has_ended = poll(&ended, 1, 240'000) == 1;
  if (!has_ended) kill(child, SIGKILL);
  std::filesystem::remove_all(directory.path());
  std::_Exit(has_ended ? 0 : 1);
}

TEST(SealedLauncher, that_dies_early_takes_the_process_of_its_program_with_it) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  int status = -1;
  EXPECT_EXIT(
      kill_a_launcher(),
      [&](int now) {
        status = WIFEXITED(now) ? WEXITSTATUS(now) : -1;
        return status == 0 || status == kNotHere;
      },
      "");
  if (status == kNotHere) GTEST_SKIP() << "nothing can be started sealed here";
}

/// Sets a variable of this process for the duration of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name)) before_ = old;
    setenv(name, value, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

TEST_F(SealedStart, keeps_the_environment_from_a_program_but_for_what_it_needs) {
  const Variable secret("LRPC_TEST_SECRET", "swordfish");
  const Variable zone("TZ", "UTC");
  const Variable locale("LC_NUMERIC", "C");
  EXPECT_EQ(run({"variable", "LRPC_TEST_SECRET"}), 0);
  EXPECT_EQ(run({"variable", "TZ", "UTC"}), 0);
  EXPECT_EQ(run({"variable", "LC_NUMERIC", "C"}), 0);
}

TEST_F(SealedStart, passes_and_sets_the_variables_that_are_named) {
  const Variable secret("LRPC_TEST_SECRET", "swordfish");
  const Variable zone("TZ", "UTC");
  const auto options = [](std::vector<std::string> environment) {
    SealedOptions made;
    made.environment = std::move(environment);
    return made;
  };
  EXPECT_EQ(run({"variable", "LRPC_TEST_SECRET", "swordfish"}, options({"LRPC_TEST_SECRET"})), 0);
  EXPECT_EQ(run({"variable", "LRPC_TEST_SECRET", "else=where"}, options({"LRPC_TEST_SECRET=else=where"})), 0);
  EXPECT_EQ(run({"variable", "TZ", ""}, options({"TZ=CET", "TZ="})), 0);
  EXPECT_EQ(run({"variable", "LRPC_TEST_UNSET"}, options({"LRPC_TEST_UNSET"})), 0);
  for (const std::string wrong : {"", "=value", "LRPC_SEALED=7", "LRPC_SEALED"})
    EXPECT_EQ(start({"status", "0"}, options({wrong})).code(), lrpc::Errc::invalid_argument) << wrong;
}

TEST_F(SealedStart, is_no_cancellation_point_and_neither_is_the_wait_for_the_end) {
  std::atomic<int> returned{0};
  std::thread caller([&] {
    pthread_cancel(pthread_self());  // pending from now on
    {
      auto domain = start({"status", "7"});
      if (domain && WEXITSTATUS(domain->wait()) == 7) ++returned;
    }
    ++returned;
    pthread_testcancel();
    returned = -1;
  });
  caller.join();
  EXPECT_EQ(returned, 2);
}

TEST_F(SealedStart, makes_a_program_that_a_fork_child_of_the_launcher_does_not_end) {
  if (kSanitized) GTEST_SKIP() << "forks beside threads, and a sanitizer's allocator does not know of forks";
  auto domain = start({"loop", "host"});
  ASSERT_TRUE(domain) << domain.error().message();
  const pid_t child = fork();
  if (child == 0) {
    alarm(static_cast<unsigned>(kPatienceMs / 1000));  // against an endless wait
    const int status = domain->wait();
    { const lrpc::SealedDomain destroyed = *std::move(domain); }
    _exit(status == -1 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  domain->signal(SIGTERM);
  EXPECT_EQ(WTERMSIG(domain->wait()), SIGTERM) << "it still ran";
}

/// Parameter: whether SealedOptions::pdl is given. Without it the launcher first asks the nameserver for the interface.
class SealedAcrossARestart : public SealedStart, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Interfaces, SealedAcrossARestart, testing::Bool(),
                         [](const auto& known) { return known.param ? "known" : "asked_for"; });

/// The nameserver ends when the launcher has connected, is away for a while, and comes back as the world's.
TEST_P(SealedAcrossARestart, waits_on_for_its_name) {
  const TemporaryDirectory directory;
  const std::string path = directory / "s";
  sockaddr_un address{AF_UNIX, {}};
  path.copy(std::begin(address.sun_path), sizeof address.sun_path - 1);
  lrpc::UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  auto launched = std::async(std::launch::async, [&] {
    SealedOptions options;
    options.name = "host";
    options.nameserver = path;
    options.timeout = kPatience;
    options.pdl = GetParam() ? &Conformance::kPdl : nullptr;
    return lrpc::SealedDomain::start({LRPC_TEST_SEALED, "status", "7"}, std::move(options));
  });
  lrpc::UniqueFd reached(accept(listener.get(), nullptr, nullptr));
  std::filesystem::remove(path);
  listener.reset();
  reached.reset();
  // A launcher that gives up returns now; one that waits finds no nameserver.
  EXPECT_EQ(launched.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  std::filesystem::create_symlink(world_.nameserver(), path);
  auto domain = launched.get();
  ASSERT_TRUE(domain) << domain.error().message();
  EXPECT_EQ(WEXITSTATUS(domain->wait()), 7);
}

/// The test itself is a private server. It closes nothing aside meanwhile.
class SealedByAStranger : public SealedStart {
 protected:
  void SetUp() override {
    SealedStart::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto bell = lrpc::shim::make_socket_pair();
    ASSERT_TRUE(bell);
    bell_ = *std::move(bell);
    auto memory = lrpc::shim::create_region(*lrpc::shim::RegionLayout::of(Conformance::kPdl.classes));
    ASSERT_TRUE(memory);
    region_ = *std::move(memory);
  }
  /// Starts a program over a socket in which the answer already waits, followed by what `leave` sends.
  int run_with(int region, int bell, const std::function<void(int socket)>& leave = {}) {
    auto ends = answered_pair(encoded(bound_answer(Conformance::kPdl.classes)), std::array{region, bell});
    if (!ends) return -3;
    if (leave) leave(ends->second.get());
    return run_over(std::move(ends->first));
  }
  int run_over(lrpc::UniqueFd socket) {
    SealedOptions options;
    options.socket = std::move(socket);
    options.pdl = &Conformance::kPdl;
    auto domain = start({"status", "7"}, std::move(options));
    why_not_ = domain.code();
    text_ = domain ? "" : domain.error().message();
    return domain ? WEXITSTATUS(domain->wait()) : -2;
  }

  std::pair<lrpc::UniqueFd, lrpc::UniqueFd> bell_;
  lrpc::UniqueFd region_;
  lrpc::Errc why_not_ = lrpc::Errc::ok;
  std::string text_;
};

/// Fills the socket's buffer. A stranger who made the pair can do that, and leave the other end unread.
void fill(int socket) {
  const char byte = 0;
  while (send(socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) continue;
  EXPECT_EQ(errno, EAGAIN);
}

/// Otherwise the launcher would wait for ever for a child that blocks in sendmsg(2).
TEST_F(SealedByAStranger, is_given_up_where_the_bell_has_no_room_for_the_offer) {
  fill(bell_.second.get());
  EXPECT_EQ(run_with(region_.get(), bell_.second.get()), -2);
  EXPECT_EQ(why_not_, lrpc::Errc::timed_out) << text_;
}

TEST_F(SealedByAStranger, is_given_up_where_the_socket_has_no_room_for_the_request) {
  auto ends =
      answered_pair(encoded(bound_answer(Conformance::kPdl.classes)), std::array{region_.get(), bell_.second.get()});
  ASSERT_TRUE(ends);
  fill(ends->first.get());
  EXPECT_EQ(run_over(std::move(ends->first)), -2);
  EXPECT_EQ(why_not_, lrpc::Errc::timed_out) << text_;
}

TEST_F(SealedByAStranger, is_told_that_the_server_is_gone_where_the_socket_is_closed) {
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  ends->second.reset();
  EXPECT_EQ(run_over(std::move(ends->first)), -2);
  EXPECT_EQ(why_not_, lrpc::Errc::peer_gone) << text_;
}

TEST_F(SealedByAStranger, is_told_that_the_offer_failed_where_the_bell_is_closed) {
  bell_.first.reset();
  EXPECT_EQ(run_with(region_.get(), bell_.second.get()), -2);
  EXPECT_EQ(why_not_, lrpc::Errc::peer_gone) << text_;
}

TEST_F(SealedByAStranger, takes_no_answer_from_nobody_knows_whom) {
  const std::array fds{region_.get(), bell_.second.get()};
  auto ends = answered_pair(encoded(bound_answer(Conformance::kPdl.classes)), fds, false);
  ASSERT_TRUE(ends);
  EXPECT_EQ(run_over(std::move(ends->first)), -2);
  EXPECT_EQ(why_not_, lrpc::Errc::bad_message) << text_;
}

TEST_F(SealedByAStranger, takes_no_memory_for_a_bell) {
  EXPECT_EQ(run_with(region_.get(), region_.get()), -2);
  EXPECT_EQ(why_not_, lrpc::Errc::bad_message) << text_;
  EXPECT_NE(text_.find("bell"), std::string::npos) << text_;
}

/// Neither the launcher nor the program's end waits for descriptors that are slow to close: either would hang.
class SealedBySlow : public SealedByAStranger, public testing::WithParamInterface<Slow> {
 protected:
  void SetUp() override {
    SealedByAStranger::SetUp();  // starts a process, which would inherit a copy
    if (IsSkipped() || HasFatalFailure()) return;
    slow_ = make(GetParam());
    if (slow_ == nullptr) GTEST_SKIP() << "cannot be made here: " << name_of(GetParam());
  }
  void TearDown() override { slow_.reset(); }
  /// From here on new processes inherit no copy from the test.
  void give_away() {
    const std::string place = "/proc/self/fd/" + std::to_string(slow_->get());
    const auto file = std::filesystem::read_symlink(place);
    slow_->give_away_meanwhile();
    EXPECT_TRUE(eventually([&] {
      std::error_code gone;
      return std::filesystem::read_symlink(place, gone) != file;
    }));
  }
  std::unique_ptr<SlowToClose> slow_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, SealedBySlow, testing::ValuesIn(kSlow),
                         [](const auto& slow) { return name_of(slow.param); });

TEST_P(SealedBySlow, is_left_in_the_socket) {
  ASSERT_EQ(run_with(region_.get(), bell_.second.get(),
                     [&](int socket) {
                       EXPECT_TRUE(LadenSocket::send(socket, slow_->get()));
                       give_away();
                     }),
            7);
}

TEST_P(SealedBySlow, comes_in_place_of_the_region) {
  EXPECT_EQ(run_with(slow_->get(), bell_.second.get(), [&](int) { give_away(); }), -2);
  EXPECT_EQ(why_not_, lrpc::Errc::bad_message);
}

/// A socket is accepted as a bell, whatever its queue holds.
TEST_P(SealedBySlow, comes_in_place_of_the_bell) {
  const bool fits = GetParam() == Slow::laden;
  EXPECT_EQ(run_with(region_.get(), slow_->get(), [&](int) { give_away(); }), fits ? 7 : -2);
  EXPECT_EQ(why_not_, fits ? lrpc::Errc::ok : lrpc::Errc::bad_message);
}

TEST_F(SealedByAStranger, closes_memory_that_is_no_region_aside_and_for_its_user) {
  constexpr auto kName = "sealed-no-region";
  expect_left_to_closers(kName, [&] {
    const lrpc::UniqueFd memory(memfd_create(kName, MFD_CLOEXEC));
    EXPECT_EQ(run_with(memory.get(), bell_.second.get()), -2);
    EXPECT_EQ(why_not_, lrpc::Errc::bad_message);
  });
  EXPECT_TRUE(eventually([&] { return copies_of_memory(kName) == 0; }));
}

}  // namespace
}  // namespace testing_lrpc
