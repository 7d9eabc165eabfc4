// The socket's file: made, replaced, refused, removed.
#include "listen_socket.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

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
  auto second = ListenSocket::open(path, 0600);
  EXPECT_EQ(second.code(), Errc::name_taken);
  EXPECT_NE(second.error().text.find(path), std::string::npos);
  EXPECT_NE(second.error().text.find(std::to_string(::getpid())), std::string::npos) << second.error().text;
  EXPECT_TRUE(exists(path));
  EXPECT_TRUE(shim::connect_nameserver(path));
}

/// A child that listens on `path`, and says nothing to anybody. `hold`: another process, which has inherited the
/// socket, keeps it open for so long after the child has ended by itself.
class SilentListener {
 public:
  explicit SilentListener(const std::string& path, std::optional<std::chrono::milliseconds> hold = {}) {
    int ready[2];
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      auto socket = ListenSocket::open(path, 0600);
      if (socket && hold && ::fork() == 0) {
        std::this_thread::sleep_for(*hold);
        ::_exit(0);
      }
      (void)!::write(ready[1], "", 1);
      if (hold) ::_exit(0);
      for (;;) ::pause();
    }
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
  /// Waits until it has ended, and leaves it a zombie.
  void wait_for_its_end() const {
    siginfo_t ended{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT), 0);
  }

 private:
  pid_t pid_ = -1;
};

TEST(ListenSocket, a_socket_that_outlives_its_process_for_a_moment_is_waited_for) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  const SilentListener dead(path, std::chrono::milliseconds(300));
  dead.wait_for_its_end();
  EXPECT_TRUE(shim::connect_nameserver(path)) << "as if somebody listened";
  auto socket = ListenSocket::open(path, 0600);
  ASSERT_TRUE(socket) << socket.error().message();
  EXPECT_TRUE(shim::connect_nameserver(path));
}

TEST(ListenSocket, a_nameserver_that_dies_while_it_is_asked_whether_it_lives_is_replaced) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "s";
  const SilentListener dying(path);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    dying.kill();
  });
  auto socket = ListenSocket::open(path, 0600);
  killer.join();
  ASSERT_TRUE(socket) << socket.error().message();
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
