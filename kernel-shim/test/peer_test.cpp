// The identity of the peer, and whether interfaces are compatible.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "soft_limit.h"

namespace lrpc::shim {
namespace {

bool exited(int pidfd, int wait_ms) {
  pollfd entry{pidfd, POLLIN, 0};
  return ::poll(&entry, 1, wait_ms) == 1;
}

TEST(Peer, credentials_are_the_kernels) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  auto peer = peer_credentials(pair->first.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::getuid());
  EXPECT_EQ(peer->gid, ::getgid());
}

TEST(Peer, a_descriptor_that_is_no_socket_is_said_to_be_none) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto early = ask_for_senders(ends[0]);
  EXPECT_EQ(early.code(), Errc::system_error);
  EXPECT_EQ(early.error().text.find("the descriptor is no end of a socket pair"), 0U) << early.error().text;
  ::close(ends[0]);
  ::close(ends[1]);
}

/// A set-user-ID program, or a daemon that acts for one of its users.
TEST(Peer, is_told_with_its_messages_by_the_user_and_group_that_it_acts_as) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair && ask_for_senders(pair->first.get()));
  constexpr uid_t kUser = 54'321;
  constexpr gid_t kGroup = 54'322;
  const auto bytes = encode({1, ListRequest{}, {}, {}}).value();
  const int end = pair->second.get();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setegid(kGroup) != 0 || ::seteuid(kUser) != 0) ::_exit(77);
    ::_exit(send_packet(end, bytes) >= 0 && send_packet(end, bytes, {&end, 1}) >= 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs CAP_SETUID and CAP_SETGID";
  for (const std::size_t descriptors : {0U, 1U}) {
    const auto message = receive_message(pair->first.get(), std::chrono::milliseconds(0));
    ASSERT_TRUE(message && *message && (*message)->sender);
    EXPECT_EQ((*message)->fds.size(), descriptors);
    EXPECT_EQ((*message)->sender->pid, child);
    EXPECT_EQ((*message)->sender->uid, kUser);
    EXPECT_EQ((*message)->sender->gid, kGroup);
  }
}

TEST(Peer, a_pidfd_becomes_readable_when_the_process_exits) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  auto pidfd = open_pidfd(child);
  ASSERT_TRUE(pidfd);
  EXPECT_FALSE(exited(pidfd->get(), 0));
  ::kill(child, SIGKILL);
  EXPECT_TRUE(exited(pidfd->get(), 240'000));
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(open_pidfd(child).code(), Errc::peer_gone);
}

TEST(Peer, the_pidfd_of_a_living_peer_comes_by_either_way) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  for (auto way : {&peer_pidfd, &peer_pidfd_by_pid}) {
    auto pidfd = way(pair->first.get());
    ASSERT_TRUE(pidfd) << pidfd.error().message();
    EXPECT_FALSE(exited(pidfd->get(), 0));
  }
}

TEST(Peer, that_has_ended_is_gone_although_others_hold_its_socket) {
  const auto carried = make_socket_pair();
  ASSERT_TRUE(carried);
  std::byte any{};
  std::array<int, 2> made{};
  const pid_t child = ::fork();
  if (child == 0) {
    const bool done = ::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, made.data()) == 0;
    ::_exit(done && send_packet(carried->second.get(), {&any, 1}, made) == 1 ? 0 : 1);
  }
  ASSERT_EQ(receive_packet(carried->first.get(), {&any, 1}, made), 1);
  const UniqueFd first(made[0]);
  const UniqueFd second(made[1]);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  for (auto way : {&peer_pidfd, &peer_pidfd_by_pid}) EXPECT_EQ(way(first.get()).code(), Errc::peer_gone);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (auto way : {&peer_pidfd, &peer_pidfd_by_pid}) EXPECT_EQ(way(first.get()).code(), Errc::peer_gone) << "reaped";
}

TEST(Peer, without_the_socket_option_a_hung_up_peer_is_gone) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  pair->second.reset();
  EXPECT_EQ(peer_pidfd_by_pid(pair->first.get()).code(), Errc::peer_gone);
}

/// The peer of a socket that is not connected has no number, like a nameserver outside of this PID namespace.
TEST(Peer, introduced_by_an_outer_nameserver_has_its_number_here_or_an_error_without_descriptors_to_ask_with) {
  const UniqueFd nameserver(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  auto pidfd = open_pidfd(::getpid());
  ASSERT_TRUE(nameserver && pidfd);
  ASSERT_EQ(peer_credentials(nameserver.get()).value().pid, 0);
  const auto number = [&] { return number_of_introduced(nameserver.get(), ::getpid() + 1, pidfd->get()); };
  ASSERT_EQ(number().value(), ::getpid());
  const auto lowest = static_cast<rlim_t>(UniqueFd(::dup(pidfd->get())).get());  // that is free again
  for (const rlim_t left : {0U, 1U}) {
    const testing_lrpc::SoftLimit few(lowest + left);
    EXPECT_EQ(number().code(), Errc::system_error) << left << " descriptors";
  }
  EXPECT_EQ(number().value(), ::getpid());
}

/// As an lrpcd in a PID namespace below that of its servers and clients, which sees none of them.
TEST(Peer, introduced_without_a_number_by_a_nameserver_that_is_seen_here_has_its_number_here) {
  const auto nameserver = make_socket_pair();
  auto pidfd = open_pidfd(::getpid());
  ASSERT_TRUE(nameserver && pidfd);
  EXPECT_EQ(number_of_introduced(nameserver->first.get(), 0, pidfd->get()).value(), ::getpid());
}

TEST(Peer, nonces_differ) { EXPECT_NE(make_nonce(), make_nonce()); }

TEST(Compatible, the_same_interface_or_a_newer_minor_version_agrees) {
  EXPECT_TRUE(compatible({"Files", 1, 0, 5}, {"Files", 1, 0, 5}));
  EXPECT_TRUE(compatible({"Files", 1, 0, 5}, {"Files", 1, 2, 5}));
}

TEST(Compatible, each_mismatch_has_its_own_code_and_names_both_sides) {
  const InterfaceId wanted{"Files", 1, 2, 5};
  EXPECT_EQ(compatible(wanted, {"Clock", 1, 2, 5}).code(), Errc::interface_mismatch);
  EXPECT_EQ(compatible(wanted, {"Files", 2, 2, 5}).code(), Errc::version_mismatch);
  EXPECT_EQ(compatible(wanted, {"Files", 1, 1, 5}).code(), Errc::version_mismatch);
  EXPECT_EQ(compatible(wanted, {"Files", 1, 2, 6}).code(), Errc::hash_mismatch);
  const std::string text = compatible(wanted, {"Files", 1, 1, 5}).error().text;
  EXPECT_NE(text.find("Files 1.2"), std::string::npos) << text;
  EXPECT_NE(text.find("Files 1.1"), std::string::npos) << text;
  EXPECT_NE(compatible(wanted, {"Files", 1, 2, 6}).error().text.find("0000000000000006"), std::string::npos);
}

TEST(Compatible, a_newer_minor_version_with_other_declarations_is_a_version_mismatch) {
  const Status older_client = compatible({"Files", 1, 2, 5}, {"Files", 1, 3, 6});
  EXPECT_EQ(older_client.code(), Errc::version_mismatch);
  EXPECT_NE(older_client.error().text.find("the client is older"), std::string::npos) << older_client.error().text;
}

}  // namespace
}  // namespace lrpc::shim
