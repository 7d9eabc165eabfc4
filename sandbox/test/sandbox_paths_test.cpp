// Which files, sockets and ports the sandbox leaves usable.
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
#include "fixture.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::sandbox::test {
namespace {

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
  // The socket is created after the sandbox was entered, as when an lrpcd restarts.
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
                     // Changes of metadata, which Landlock does not check, are refused for every file. So is
                     // truncation by open(2) with access mode 3 (O_ACCMODE), which neither reads nor writes.
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
  // Ways to connect that Landlock does not check.
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

}  // namespace
}  // namespace lrpc::sandbox::test
