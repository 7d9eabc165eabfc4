// The socket's file: how it is made, replaced, refused and removed.
#include "loop/listen_socket.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include "length.h"
#include "test_peer.h"

namespace lrpc::nameserver {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

bool exists(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

void leave_dead_socket(const std::string& path, int type = SOCK_SEQPACKET) {
  const UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

/// The lock that a nameserver holds while it starts on `path`.
UniqueFd lock_of(const std::string& path) {
  UniqueFd file(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(::flock(file.get(), LOCK_EX), 0);
  return file;
}

/// A child that listens on `path` and never answers. `held`: the child ends, and another process that inherited the
/// socket keeps it open until let_go().
class SilentListener {
 public:
  explicit SilentListener(const std::string& path, bool held = false) {
    int ready[2];
    int hold[2];
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(hold, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(hold[1]);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      auto socket = ListenSocket::open(path, 0600);
      if (socket && held && ::fork() == 0) {
        char end = 0;
        (void)!::read(hold[0], &end, 1);
        ::_exit(0);
      }
      (void)!::write(ready[1], "", 1);
      if (held) ::_exit(0);
      for (;;) ::pause();
    }
    ::close(hold[0]);
    hold_ = UniqueFd(hold[1]);
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  ~SilentListener() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  SilentListener(const SilentListener&) = delete;
  SilentListener& operator=(const SilentListener&) = delete;
  void kill() const { ::kill(pid_, SIGKILL); }
  void let_go() { hold_.reset(); }
  /// Waits until the child has ended, without reaping it.
  void wait_for_its_end() const {
    siginfo_t ended{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT), 0);
  }

 private:
  pid_t pid_ = -1;
  UniqueFd hold_;
};

TEST(ListenSocket, the_directory_is_private_and_the_mode_is_exact) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "lrpc/lrpcd.sock";
  const mode_t before = ::umask(0077);
  auto socket = ListenSocket::open(path, 0666);
  ::umask(before);
  ASSERT_TRUE(socket) << socket.error().message();
  EXPECT_EQ(mode_of(path), 0666U);
  EXPECT_EQ(mode_of(directory / "lrpc"), 0700U);
}

TEST(ListenSocket, the_file_goes_with_the_socket) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  {
    auto socket = ListenSocket::open(path, 0600);
    ASSERT_TRUE(socket);
    EXPECT_TRUE(exists(path));
  }
  EXPECT_FALSE(exists(path));
}

TEST(ListenSocket, somebody_elses_file_in_its_place_stays) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  {
    auto socket = ListenSocket::open(path, 0600);
    ASSERT_TRUE(socket);
    std::filesystem::remove(path);
    std::ofstream(path) << "mine";
  }
  EXPECT_TRUE(exists(path));
}

TEST(ListenSocket, a_dead_nameservers_socket_is_replaced) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  leave_dead_socket(path);
  auto socket = ListenSocket::open(path, 0600);
  ASSERT_TRUE(socket) << socket.error().message();
  EXPECT_TRUE(shim::connect_nameserver(path));
}

TEST(ListenSocket, a_living_nameservers_socket_is_refused_and_its_process_named) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  auto first = ListenSocket::open(path, 0600);
  ASSERT_TRUE(first);
  std::thread nameserver([&] {
    pollfd asked{first->fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&asked, 1, static_cast<int>(test::kPatience.count())), 1);
    const UniqueFd asking(::accept4(first->fd(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(shim::receive_message(asking.get(), test::kPatience));
    (void)shim::send_message(asking.get(), {1, shim::Listed{}, {}, {}});  // if late, nobody waits for it any more
  });
  auto second = ListenSocket::open(path, 0600);
  nameserver.join();
  EXPECT_EQ(second.code(), Errc::name_taken);
  EXPECT_NE(second.error().text.find(path), std::string::npos);
  EXPECT_NE(second.error().text.find(std::to_string(::getpid())), std::string::npos) << second.error().text;
  EXPECT_TRUE(exists(path));
  EXPECT_TRUE(shim::connect_nameserver(path));
}

TEST(ListenSocket, a_living_nameservers_socket_is_refused_also_if_it_does_not_answer) {
  if (!testing_lrpc::long_tests()) GTEST_SKIP() << "it is waited for: LRPC_LONG_TESTS=1";
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  auto first = ListenSocket::open(path, 0600);
  ASSERT_TRUE(first);
  auto second = ListenSocket::open(path, 0600);
  EXPECT_EQ(second.code(), Errc::name_taken);
  EXPECT_NE(second.error().text.find("does not answer"), std::string::npos) << second.error().text;
  EXPECT_TRUE(shim::connect_nameserver(path));
}

TEST(ListenSocket, waits_for_nothing_once_it_is_told_to_stop) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  const UniqueFd stop(::eventfd(1, EFD_CLOEXEC));
  {
    auto silent = ListenSocket::open(path, 0600, stop.get());
    ASSERT_TRUE(silent) << "there was nothing to wait for";
    EXPECT_EQ(ListenSocket::open(path, 0600, stop.get()).code(), Errc::call_cancelled) << "does it answer?";
    EXPECT_TRUE(shim::connect_nameserver(path));
  }
  const UniqueFd locked = lock_of(path);
  EXPECT_EQ(ListenSocket::open(path, 0600, stop.get()).code(), Errc::call_cancelled);
  EXPECT_FALSE(exists(path));
}

TEST(ListenSocket, waits_a_bounded_time_for_one_that_starts_on_the_same_path) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  UniqueFd locked = lock_of(path);
  EXPECT_EQ(ListenSocket::open(path, 0600).code(), Errc::timed_out);
  locked.reset();
  EXPECT_TRUE(exists(path + ".lock")) << "as one that was killed leaves it";
  EXPECT_TRUE(ListenSocket::open(path, 0600));
  EXPECT_FALSE(exists(path + ".lock"));
}

/// Everybody who can read the directory can lock it, and everybody can read that of the system's socket.
TEST(ListenSocket, nobody_keeps_it_from_starting_by_a_lock_on_the_directory) {
  test::TemporaryDirectory directory;
  const UniqueFd locked(::open((directory / ".").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(locked.get(), LOCK_EX), 0);
  const auto socket = ListenSocket::open(directory / "s", 0600);
  EXPECT_TRUE(socket) << socket.error().message();
}

TEST(ListenSocket, the_lock_of_its_start_can_be_opened_by_nobody_else) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  const mode_t before = ::umask(0);
  const SilentListener listener(path);  // a starting nameserver asks it whether it lives, and holds the lock meanwhile
  std::optional<mode_t> mode;
  while (!mode) {
    const UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
    std::atomic<bool> ended = false;
    std::thread starting([&] {
      EXPECT_FALSE(ListenSocket::open(path, 0600, stop.get()));
      ended = true;
    });
    struct stat found {};
    while (!ended && ::lstat((path + ".lock").c_str(), &found) != 0) std::this_thread::yield();
    if (!ended) mode = found.st_mode & 07777;
    ASSERT_EQ(::eventfd_write(stop.get(), 1), 0);
    starting.join();
  }
  ::umask(before);
  EXPECT_EQ(*mode, 0600U);
  EXPECT_FALSE(exists(path + ".lock"));
}

TEST(ListenSocket, a_file_in_the_place_of_the_lock_that_is_none_of_its_own_is_refused) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  ASSERT_EQ(::symlink("/dev/null", (path + ".lock").c_str()), 0);
  EXPECT_EQ(ListenSocket::open(path, 0600).code(), Errc::system_error);
  ASSERT_EQ(::unlink((path + ".lock").c_str()), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's file";
  std::ofstream(path + ".lock").close();
  ASSERT_EQ(::chown((path + ".lock").c_str(), 54321, 54321), 0);
  const auto socket = ListenSocket::open(path, 0600);
  EXPECT_EQ(socket.code(), Errc::not_permitted);
  EXPECT_NE(socket.error().text.find(path + ".lock"), std::string::npos) << socket.error().text;
}

/// Opens `path` while its nameserver is ended by `end`; `listener` makes that nameserver. Repeats all of it if it takes
/// longer than open() waits for a dying nameserver, as on a stalled machine.
template <class MakeListener, class End>
void expect_opened(const std::string& path, MakeListener listener, End end) {
  for (;;) {
    const std::unique_ptr<SilentListener> dying = listener();
    std::thread ending([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      end(*dying);
    });
    const auto began = std::chrono::steady_clock::now();
    auto socket = ListenSocket::open(path, 0600);
    const bool waited = std::chrono::steady_clock::now() - began >= std::chrono::seconds(2);
    ending.join();
    if (!socket && waited) continue;
    ASSERT_TRUE(socket) << socket.error().message();
    EXPECT_TRUE(shim::connect_nameserver(path));
    return;
  }
}

TEST(ListenSocket, a_socket_that_outlives_its_process_for_a_moment_is_waited_for) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  const auto dead = [&] {
    auto listener = std::make_unique<SilentListener>(path, true);
    listener->wait_for_its_end();
    EXPECT_TRUE(shim::connect_nameserver(path)) << "as if somebody listened";
    return listener;
  };
  expect_opened(path, dead, [](SilentListener& listener) { listener.let_go(); });
}

TEST(ListenSocket, a_nameserver_that_dies_while_it_is_asked_whether_it_lives_is_replaced) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  expect_opened(
      path, [&] { return std::make_unique<SilentListener>(path); }, [](SilentListener& listener) { listener.kill(); });
}

TEST(ListenSocket, what_is_not_a_socket_is_not_touched) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  std::ofstream(path) << "precious";
  EXPECT_EQ(ListenSocket::open(path, 0600).code(), Errc::invalid_argument);
  EXPECT_TRUE(exists(path));
}

TEST(ListenSocket, impossible_paths_are_refused_with_the_reason) {
  EXPECT_EQ(ListenSocket::open("", 0600).code(), Errc::invalid_argument);
  EXPECT_EQ(ListenSocket::open("/tmp/" + std::string(200, 'x'), 0600).code(), Errc::invalid_argument);
  auto nowhere = ListenSocket::open("/no/such/directory/s", 0600);
  EXPECT_EQ(nowhere.code(), Errc::system_error);
  EXPECT_NE(nowhere.error().text.find("/no/such/directory"), std::string::npos) << nowhere.error().text;
  EXPECT_NE(nowhere.error().text.find("No such file or directory"), std::string::npos) << nowhere.error().text;
}

TEST(ListenSocket, a_directory_that_others_may_write_is_refused) {
  test::TemporaryDirectory directory;
  const std::string open_to_all = directory / "open";
  ASSERT_EQ(::mkdir(open_to_all.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(open_to_all.c_str(), 0777), 0);
  EXPECT_EQ(ListenSocket::open(open_to_all + "/s", 0600).code(), Errc::not_permitted);
}

}  // namespace
}  // namespace lrpc::nameserver
