// Which kinds of Unix sockets a sandbox allows. It filters kinds, because seccomp and Landlock do not check socket
// paths.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

#include "attempts.h"
#include "lrpc/sandbox.h"

namespace lrpc::sandbox::test {
namespace {

/// What `body` returns inside a sandbox of `groups`. "no sandbox: ..." where none can be had; the test then skips.
std::string inside(const std::vector<Group>& groups, const std::function<std::string()>& body) {
  return in_a_child([&]() -> std::string {
    const auto entered = enter({.groups = groups});
    if (!entered) return entered.error().message();
    return entered->complete() ? body() : "no sandbox: " + entered->text();
  });
}

std::string first_refused(const std::vector<Attempt>& attempts) {
  for (const Attempt& attempt : attempts) {
    if (const int err = attempt.act(); err != 0) return attempt.name + ": " + std::strerror(err);
  }
  return "";
}

TEST(UnixSockets, of_connections_can_be_made_with_any_flags) {
  std::vector<Attempt> made;
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    made.push_back(socket_of("Unix", AF_UNIX, type));
    made.push_back(socket_of("Unix, not blocking", AF_UNIX, type | SOCK_NONBLOCK));
    made.push_back(pair_of("of connections", type));
    made.push_back(pair_of("of connections, not blocking", type | SOCK_NONBLOCK));
  }
  const std::string refused = inside(server_domain(), [&] { return first_refused(made); });
  if (refused.starts_with("no sandbox")) GTEST_SKIP() << refused;
  EXPECT_EQ(refused, "");
}

TEST(UnixSockets, of_datagrams_can_be_made_if_that_was_asked_for) {
  std::vector<Group> groups = server_domain();
  groups.push_back(Group::unix_datagrams);
  const std::string refused = inside(groups, [] {
    return first_refused({socket_of("Unix datagrams", AF_UNIX, SOCK_DGRAM), pair_of("of datagrams", SOCK_DGRAM)});
  });
  if (refused.starts_with("no sandbox")) GTEST_SKIP() << refused;
  EXPECT_EQ(refused, "");
}

}  // namespace
}  // namespace lrpc::sandbox::test
