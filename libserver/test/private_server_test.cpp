// A server without a name, from outside: when it cannot serve over a socket, when it is moved, and whom it takes a
// client for.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "eventually.h"
#include "fork_as.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "refused_calls.h"
#include "soft_limit.h"

namespace lrpc::server {
namespace {

class PrivateServer : public testing::Test {
 protected:
  using Ends = std::pair<UniqueFd, UniqueFd>;  ///< The server's and the client's.
  static Ends ends() {
    auto pair = shim::make_socket_pair();
    EXPECT_TRUE(pair);
    return pair ? *std::move(pair) : Ends();
  }
  Status serve_over(Server& server, UniqueFd end) {
    return server.serve_over(std::move(end), kPdl, {}, &implementation_);
  }
  /// Whether the server binds a client that asks over this end. It is bound as long as the answer exists.
  static std::optional<shim::BinderMessage> import_over(const UniqueFd& end) {
    const shim::ImportRequest request{.name = {}, .interface = shim::OwnedInterfaceId::of(kPdl.interface)};
    EXPECT_TRUE(shim::send_message(end.get(), {1, request, {}, {}}));
    auto answer = shim::receive_message(end.get(), testing_lrpc::kPatience);
    if (!answer || !*answer || !std::holds_alternative<shim::Bound>((*answer)->body)) return std::nullopt;
    return std::move(**answer);
  }

  /// A pair that a process has made which has ended since; its number.
  static pid_t make_in_ended_process(Ends& pair) {
    const Ends carried = ends();
    std::byte any{};
    std::array<int, 2> both{};
    const pid_t maker = ::fork();
    if (maker == 0) {
      const bool made = ::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, both.data()) == 0;
      ::_exit(made && shim::send_packet(carried.second.get(), {&any, 1}, both) == 1 ? 0 : 1);
    }
    EXPECT_EQ(::waitpid(maker, nullptr, 0), maker);
    EXPECT_EQ(shim::receive_packet(carried.first.get(), {&any, 1}, both), 1);
    pair = {UniqueFd(both[0]), UniqueFd(both[1])};
    return maker;
  }
  static void ask(const UniqueFd& end, std::span<const std::byte> request) {
    (void)::syscall(SYS_sendto, end.get(), request.data(), request.size(), 0, nullptr, 0);
  }
  static std::vector<std::byte> import_request() {
    return shim::encode({1, shim::ImportRequest{{}, shim::OwnedInterfaceId::of(kPdl.interface)}, {}, {}}).value();
  }
  /// Whether the kernel tells by whom a pair was made, or a message sent, when that process has ended.
  static bool tells_of_ended(const UniqueFd& end) {
    constexpr int kPeersPidfd = 77;  // SO_PEERPIDFD
    int pidfd = -1;
    socklen_t size = sizeof pidfd;
    const bool tells = ::getsockopt(end.get(), SOL_SOCKET, kPeersPidfd, &pidfd, &size) == 0 || errno != ENOPROTOOPT;
    const UniqueFd told(pidfd);
    return tells;
  }
  static constexpr const char* kBeforeLinux65 = "before Linux 6.5 the kernel does not tell";

  static constexpr AStackClass kClass{64, 0, 1};
  static constexpr Pdl kPdl{.interface = {.name = "Empty"}, .classes = {&kClass, 1}, .procedures = {}, .text = {}};
  const int implementation_ = 0;
};

TEST_F(PrivateServer, that_lacks_descriptors_says_so_hangs_up_and_serves_the_next_client) {
  Server server;
  Ends refused = ends();
  {
    const testing_lrpc::SoftLimit none(1);
    const Status served = serve_over(server, std::move(refused.first));
    EXPECT_EQ(served.code(), Errc::system_error);
    EXPECT_NE(served.error().message().find("epoll_create1"), std::string::npos) << served.error().message();
  }
  EXPECT_TRUE(shim::hung_up(refused.second.get()));
  Ends later = ends();
  ASSERT_TRUE(serve_over(server, std::move(later.first)));
  EXPECT_TRUE(import_over(later.second));
}

TEST_F(PrivateServer, that_is_moved_goes_on_serving_its_clients) {
  Ends first = ends();
  Ends second = ends();
  Server before;
  ASSERT_TRUE(serve_over(before, std::move(first.first)));
  const auto bound_before = import_over(first.second);
  EXPECT_TRUE(bound_before);
  Server moved(std::move(before));
  EXPECT_EQ(moved.statistics().bindings, 1U);
  const auto bound_after = import_over(first.second);
  EXPECT_TRUE(bound_after) << "over the socket that the first one was given";
  EXPECT_EQ(moved.statistics().bindings, 2U);
  EXPECT_TRUE(serve_over(moved, std::move(second.first)));
}

TEST_F(PrivateServer, does_not_give_the_groups_of_a_process_that_has_ended_to_another_one_with_its_number) {
  Ends pair;
  const pid_t maker = make_in_ended_process(pair);
  if (!tells_of_ended(pair.first)) GTEST_SKIP() << kBeforeLinux65;
  const auto request = import_request();
  std::atomic<pid_t> asked{0};
  std::atomic<GroupsKnown> known{GroupsKnown::all};
  ExportOptions options;
  options.authorise = [&](const ClientCredentials& client) -> Status {
    asked = client.pid;
    known = client.groups_known;
    return {};
  };
  Server server;
  ASSERT_TRUE(server.serve_over(std::move(pair.first), kPdl, {}, &implementation_, options));
  const pid_t client = testing_lrpc::fork_as(maker, [&] { ask(pair.second, request); });
  if (client < 0) GTEST_SKIP() << testing_lrpc::kNoNumber;
  const auto answer = shim::receive_message(pair.second.get(), testing_lrpc::kPatience);
  ASSERT_EQ(::waitpid(client, nullptr, 0), client);
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ(asked, maker);
  EXPECT_EQ(known, GroupsKnown::none);
}

TEST_F(PrivateServer, does_not_take_a_process_for_a_client_that_has_ended_and_had_its_number) {
  Ends pair = ends();
  ASSERT_TRUE(shim::ask_for_senders(pair.first.get()));
  if (!tells_of_ended(pair.first)) GTEST_SKIP() << kBeforeLinux65;
  const auto request = import_request();
  const pid_t client = ::fork();
  if (client == 0) {
    ask(pair.second, request);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(client, nullptr, 0), client);
  const pid_t other = testing_lrpc::fork_as(client, testing_lrpc::wait_for_ever);
  if (other < 0) GTEST_SKIP() << testing_lrpc::kNoNumber;
  Server server;
  ASSERT_TRUE(serve_over(server, std::move(pair.first)));
  const auto answer = shim::receive_message(pair.second.get(), testing_lrpc::kPatience);
  ::kill(other, SIGKILL);
  ASSERT_EQ(::waitpid(other, nullptr, 0), other);
  ASSERT_TRUE(answer && *answer);
  const auto* const failed = std::get_if<shim::Failed>(&(*answer)->body);
  ASSERT_NE(failed, nullptr) << "it is bound as the other process";
  EXPECT_EQ(failed->code, Errc::peer_gone) << failed->text;
}

/// As on Linux 6.1, which Debian 12 has.
TEST_F(PrivateServer, binds_its_clients_where_the_kernel_does_not_tell_by_whom_a_message_was_sent) {
  bool can = false;
  std::thread([&] {
    constexpr std::uint32_t kPassPidfd = 76;  // SO_PASSPIDFD
    constexpr std::uint32_t kPeerPidfd = 77;  // SO_PEERPIDFD
    can = testing_lrpc::forget_socket_option(SYS_setsockopt, kPassPidfd) &&
          testing_lrpc::forget_socket_option(SYS_getsockopt, kPeerPidfd);
    if (!can) return;
    Ends pair = ends();
    Server server;  // its threads have the filter, too
    EXPECT_TRUE(serve_over(server, std::move(pair.first)));
    EXPECT_TRUE(import_over(pair.second));
  }).join();
  if (!can) GTEST_SKIP() << testing_lrpc::kNoSuchKernel;
}

}  // namespace
}  // namespace lrpc::server
