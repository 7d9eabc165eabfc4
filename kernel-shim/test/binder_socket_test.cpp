// Binder messages over real sockets: descriptors, timeouts, hang-ups, and peers that break the rules.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

#include "lrpc/detail/shim/binder/ask_nameserver.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "refused_calls.h"
#include "send_packet.h"

namespace lrpc::shim {
namespace {

using std::chrono::milliseconds;

std::size_t open_fds() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

UniqueFd some_fd() { return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

/// Opens descriptors until only `room` are free.
std::vector<UniqueFd> full_table(std::size_t room) {
  rlimit low{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &low), 0);
  low.rlim_cur = 64;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<UniqueFd> taken;
  for (UniqueFd fd = some_fd(); fd; fd = some_fd()) taken.push_back(std::move(fd));
  taken.resize(taken.size() - std::min(room, taken.size()));
  return taken;
}

/// Sends raw bytes with `fds` copies of a descriptor.
void send_raw(int socket, std::span<const std::byte> bytes, std::size_t fds) {
  const UniqueFd sent = some_fd();
  ASSERT_TRUE(testing_lrpc::send_packet(socket, bytes, std::vector<int>(fds, sent.get())));
}

class BinderSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    fds_before_ = open_fds();
    auto pair = make_socket_pair();
    ASSERT_TRUE(pair);
    here_ = std::move(pair->first);
    there_ = std::move(pair->second);
  }
  void TearDown() override {
    here_.reset();
    there_.reset();
    EXPECT_EQ(open_fds(), fds_before_) << "descriptors leaked";
  }
  UniqueFd here_;
  UniqueFd there_;
  std::size_t fds_before_ = 0;
};

TEST_F(BinderSocket, a_message_travels_with_its_descriptors) {
  BinderMessage message{5, BindRequest{1, 2, make_nonce(), {3, 4, 5}, Gate::handoff}, {}, {}};
  for (int i = 0; i < 3; ++i) message.fds.push_back(some_fd());
  ASSERT_TRUE(send_message(here_.get(), message));
  auto got = receive_message(there_.get());
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->request, 5U);
  EXPECT_EQ(std::get<BindRequest>((*got)->body).nonce, std::get<BindRequest>(message.body).nonce);
  ASSERT_EQ((*got)->fds.size(), 3U);
  struct stat sent {};
  struct stat received {};
  ::fstat(message.fds[0].get(), &sent);
  ::fstat((*got)->fds[0].get(), &received);
  EXPECT_EQ(sent.st_rdev, received.st_rdev);
  EXPECT_NE(::fcntl((*got)->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE((*got)->sender.has_value());
}

TEST_F(BinderSocket, the_sender_is_known_where_the_socket_asks_for_credentials) {
  const int on = 1;
  ASSERT_EQ(::setsockopt(there_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  BinderMessage message{1, ListRequest{}, {}, {}};
  for (int i = 0; i < 3; ++i) message.fds.push_back(some_fd());  // both kinds of control message fit into one message
  ASSERT_TRUE(send_message(here_.get(), message));
  auto got = receive_message(there_.get());
  ASSERT_TRUE(got && *got);
  ASSERT_TRUE((*got)->sender.has_value());
  EXPECT_EQ((*got)->sender->pid, ::getpid());
  EXPECT_EQ((*got)->sender->uid, ::getuid());
  EXPECT_EQ((*got)->fds.size(), 3U);
}

TEST_F(BinderSocket, too_many_descriptors_are_refused_when_sending) {
  BinderMessage message{1, Withdrawn{}, {}, {}};
  for (std::size_t i = 0; i <= kMaxBinderFds; ++i) message.fds.push_back(some_fd());
  EXPECT_EQ(send_message(here_.get(), message).code(), Errc::invalid_argument);
}

TEST_F(BinderSocket, surplus_descriptors_are_closed_and_the_message_is_refused) {
  auto bytes = encode({1, Withdrawn{}, {}, {}});
  ASSERT_TRUE(bytes);
  for (const std::size_t fds : {4U, 5U, 100U, 253U}) {
    send_raw(here_.get(), *bytes, fds);
    EXPECT_EQ(receive_message(there_.get()).code(), Errc::bad_message) << fds;
  }
}

TEST_F(BinderSocket, a_message_whose_descriptors_find_no_room_arrives_marked_and_without_them) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  for (const std::size_t room : {0U, 1U, 2U, 3U}) {
    BinderMessage message{7, BindRequest{1, 2, make_nonce(), {3, 4, 5}, Gate::handoff}, {}, {}};
    for (int i = 0; i < 3; ++i) message.fds.push_back(some_fd());
    ASSERT_TRUE(send_message(here_.get(), message));
    message.fds.clear();
    send_raw(here_.get(), {}, 1);
    std::vector<UniqueFd> taken = full_table(room);
    auto got = receive_message(there_.get());
    ASSERT_TRUE(got && *got) << got.error().message();
    EXPECT_EQ((*got)->request, 7U);
    EXPECT_EQ(std::get<BindRequest>((*got)->body).binding_id, 2U);
    EXPECT_EQ((*got)->fds_lost, room < 3) << room;
    EXPECT_EQ((*got)->fds.size(), room < 3 ? 0U : 3U);
    got->reset();
    for (UniqueFd& fd : full_table(0)) taken.push_back(std::move(fd));
    EXPECT_EQ(receive_message(there_.get()).code(), Errc::bad_message) << "an empty packet is not the end of file";
    taken.clear();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  }
}

TEST_F(BinderSocket, garbage_is_refused_and_its_descriptors_are_closed) {
  const std::array<std::byte, 64> garbage{};
  send_raw(here_.get(), garbage, 2);
  EXPECT_EQ(receive_message(there_.get()).code(), Errc::bad_message);
  const std::vector<std::byte> huge(kMaxBinderMessage + 1);
  send_raw(here_.get(), huge, 1);
  EXPECT_EQ(receive_message(there_.get()).code(), Errc::bad_message);
}

TEST_F(BinderSocket, an_empty_packet_with_a_descriptor_is_refused) {
  send_raw(here_.get(), {}, 1);
  EXPECT_EQ(receive_message(there_.get()).code(), Errc::bad_message);
}

TEST_F(BinderSocket, end_of_file_is_peer_gone_in_both_directions) {
  here_.reset();
  EXPECT_EQ(receive_message(there_.get()).code(), Errc::peer_gone);
  EXPECT_EQ(send_message(there_.get(), {1, ListRequest{}, {}, {}}).code(), Errc::peer_gone);
}

TEST_F(BinderSocket, last_words_are_heard_although_the_peer_closed_with_messages_unread) {
  ASSERT_TRUE(send_message(there_.get(), {1, ListRequest{}, {}, {}}));
  ASSERT_TRUE(send_message(here_.get(), {1, Failed{Errc::bad_message, "no"}, {}, {}}));
  here_.reset();
  auto got = receive_message(there_.get());
  ASSERT_TRUE(got && *got);
  EXPECT_EQ(std::get<Failed>((*got)->body).code, Errc::bad_message);
  EXPECT_EQ(receive_message(there_.get()).code(), Errc::peer_gone);
}

TEST_F(BinderSocket, a_nameserver_that_hangs_up_before_the_request_is_heard_all_the_same) {
  const auto ask = [&] { return ask_nameserver<Listed>(there_.get(), ListRequest{}, kNoLimit).error(); };
  ASSERT_TRUE(send_message(here_.get(), {0, Failed{Errc::limit_reached, "its quota is 2 (connections)"}, {}, {}}));
  here_.reset();
  const Error refused = ask();
  EXPECT_EQ(refused.code, Errc::limit_reached);
  EXPECT_EQ(refused.text, "its quota is 2 (connections)");
  EXPECT_EQ(ask().code, Errc::peer_gone) << "it has said no more";
}

TEST_F(BinderSocket, nothing_comes_when_the_time_is_over) {
  const auto before = std::chrono::steady_clock::now();
  auto got = receive_message(there_.get(), milliseconds(30));
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->has_value());
  EXPECT_GE(std::chrono::steady_clock::now() - before, milliseconds(30));
  auto at_once = receive_message(there_.get(), milliseconds(0));
  ASSERT_TRUE(at_once);
  EXPECT_FALSE(at_once->has_value());
}

TEST_F(BinderSocket, a_message_within_the_time_is_received) {
  std::thread sender([&] {
    std::this_thread::sleep_for(milliseconds(10));
    EXPECT_TRUE(send_message(here_.get(), {9, ListRequest{}, {}, {}}));
  });
  auto got = receive_message(there_.get(), milliseconds(240'000));
  sender.join();
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->request, 9U);
}

TEST_F(BinderSocket, a_non_blocking_socket_without_messages_gives_none) {
  ASSERT_EQ(::fcntl(there_.get(), F_SETFL, O_NONBLOCK), 0);
  auto got = receive_message(there_.get());
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->has_value());
}

TEST_F(BinderSocket, a_full_socket_is_a_limit_or_is_waited_for) {
  ASSERT_EQ(::fcntl(here_.get(), F_SETFL, O_NONBLOCK), 0);
  const BinderMessage message{1, Described{{}, std::string(20'000, 'x')}, {}, {}};
  int sent = 0;
  Status status;
  while ((status = send_message(here_.get(), message, kDoNotWait))) ++sent;
  EXPECT_EQ(status.code(), Errc::limit_reached);
  EXPECT_GT(sent, 0);
  std::thread reader([&] {
    for (int i = 0; i <= sent; ++i) EXPECT_TRUE(receive_message(there_.get()));
  });
  EXPECT_TRUE(send_message(here_.get(), message));
  reader.join();
}

TEST_F(BinderSocket, the_longest_message_goes_through) {
  const BinderMessage message{1, Described{{}, std::string(kMaxBinderMessage - 64, 'x')}, {}, {}};
  ASSERT_TRUE(send_message(here_.get(), message));
  auto got = receive_message(there_.get());
  ASSERT_TRUE(got && *got);
  EXPECT_EQ(std::get<Described>((*got)->body).text.size(), kMaxBinderMessage - 64);
}

TEST_F(BinderSocket, a_packet_brings_no_more_descriptors_than_are_asked_for) {
  std::byte byte{};
  std::array<int, 1> fds{};
  send_raw(there_.get(), {&byte, 1}, 2);
  ASSERT_EQ(receive_packet(here_.get(), {&byte, 1}, fds), 1);
  EXPECT_TRUE(UniqueFd(fds[0]));
  EXPECT_EQ(open_fds(), fds_before_ + 2) << "the pair alone";
}

/// In a child, which has no thread yet that could start another one.
TEST(StrangersMessages, that_no_thread_can_receive_are_refused_with_that_reason) {
  auto ends = make_socket_pair();
  ASSERT_TRUE(ends && send_message(ends->second.get(), {1, ListRequest{}, {}, {}}));
  const pid_t child = ::fork();
  if (child == 0) {
    if (!testing_lrpc::refuse_threads()) ::_exit(77);
    const auto taken = receive_message(ends->first.get(), std::chrono::milliseconds(0), Attachments::taken_in);
    if (taken.code() != Errc::limit_reached) ::_exit(1);
    ::_exit(taken.error().message().find("no more threads") == std::string::npos ? 2 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no thread can be refused here";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace lrpc::shim
