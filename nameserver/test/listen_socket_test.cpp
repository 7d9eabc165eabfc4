// The socket's file: made, replaced, refused, removed.
#include "listen_socket.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>

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
