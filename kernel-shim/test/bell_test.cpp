#include "lrpc/detail/shim/binder/bell.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::shim {
namespace {

using namespace std::chrono_literals;

class Bell : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = make_socket_pair();
    ASSERT_TRUE(pair);
    client_ = std::move(pair->first);
    server_ = std::move(pair->second);
  }
  UniqueFd client_;
  UniqueFd server_;
};

bool same_file(int a, int b) {
  struct stat one {};
  struct stat other {};
  return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}

TEST_F(Bell, says_nothing_before_it_is_rung) {
  auto news = receive_bell(server_.get());
  ASSERT_TRUE(news);
  EXPECT_FALSE(news->has_value());
}

TEST_F(Bell, rings_and_never_blocks_when_it_is_full) {
  for (int i = 0; i < 100'000; ++i) ring_bell(client_.get());
  auto news = receive_bell(server_.get());
  ASSERT_TRUE(news && news->has_value());
  EXPECT_EQ((*news)->message, BellMessage::ring);
  EXPECT_FALSE((*news)->offered);
}

TEST_F(Bell, an_offer_carries_its_descriptor) {
  auto offered = make_socket_pair();
  ASSERT_TRUE(offered);
  ASSERT_TRUE(offer_on_bell(client_.get(), BellMessage::callback, offered->first.get()));
  auto news = receive_bell(server_.get());
  ASSERT_TRUE(news && news->has_value());
  EXPECT_EQ((*news)->message, BellMessage::callback);
  EXPECT_TRUE(same_file((*news)->offered.get(), offered->first.get()));
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1U : 0U;
  return count;
}

TEST_F(Bell, keeps_no_descriptor_that_whoever_made_it_has_the_kernel_add) {
  constexpr int kPassPidfd = 76;  // SO_PASSPIDFD
  const int on = 1;
  if (setsockopt(server_.get(), SOL_SOCKET, kPassPidfd, &on, sizeof on) != 0) GTEST_SKIP() << "needs Linux 6.5";
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 10; ++i) {
    ring_bell(client_.get());
    ASSERT_TRUE(receive_bell(server_.get()));  // received: it cannot be told from a descriptor that the client attached
    ASSERT_TRUE(send_message(client_.get(), {1, ListRequest{}, {}, {}}));
    const auto received = receive_message(server_.get(), 0ms);
    ASSERT_TRUE(received && *received);
    EXPECT_TRUE((*received)->fds.empty());
  }
  EXPECT_LE(open_descriptors(), before);  // some descriptors of an earlier test may be closed by now
}

TEST_F(Bell, closes_a_descriptor_without_waiting_for_what_lingers_in_it) {
  // A full, lingering connection that nobody reads from: close(2) would wait for it.
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    GTEST_SKIP() << "no TCP here";
  UniqueFd lingering(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  (void)connect(lingering.get(), reinterpret_cast<const sockaddr*>(&address), size);
  const UniqueFd peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::array<char, 65536> bytes{};
  for (int i = 0; i < 1000 && write(lingering.get(), bytes.data(), bytes.size()) > 0;) ++i;
  const int flags = fcntl(lingering.get(), F_GETFL);
  ASSERT_EQ(fcntl(lingering.get(), F_SETFL, flags & ~O_NONBLOCK), 0);
  const linger long_time{1, 600};
  ASSERT_EQ(setsockopt(lingering.get(), SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time), 0);
  ASSERT_TRUE(offer_on_bell(client_.get(), BellMessage::callback, lingering.get()));
  lingering.reset();
  // ctest's time limit is the check: waiting for the connection would take ten minutes.
  EXPECT_EQ(receive_bell(server_.get()).code(), Errc::bad_message);
}

TEST_F(Bell, an_offer_that_is_accepted_says_so_over_the_pair) {
  auto offered = make_socket_pair();
  ASSERT_TRUE(offered);
  ASSERT_TRUE(offer_on_bell(client_.get(), BellMessage::callback, offered->second.get()));
  offered->second.reset();
  EXPECT_EQ(await_acceptance(offered->first.get(), BellMessage::callback, 10ms).code(), Errc::timed_out);
  auto news = receive_bell(server_.get());
  ASSERT_TRUE(news && news->has_value());
  accept_offer((*news)->offered.get(), BellMessage::callback);
  EXPECT_TRUE(await_acceptance(offered->first.get(), BellMessage::callback));
}

TEST_F(Bell, an_offer_that_is_dropped_is_the_end_of_the_pair) {
  auto offered = make_socket_pair();
  ASSERT_TRUE(offered);
  ASSERT_TRUE(offer_on_bell(client_.get(), BellMessage::callback, offered->second.get()));
  offered->second.reset();
  ASSERT_TRUE(receive_bell(server_.get()));  // and closes it
  EXPECT_EQ(await_acceptance(offered->first.get(), BellMessage::callback).code(), Errc::peer_gone);
}

TEST_F(Bell, a_full_bell_holds_an_offer_no_longer_than_it_is_ready_to_wait) {
  for (int i = 0; i < 100'000; ++i) ring_bell(client_.get());
  EXPECT_EQ(offer_on_bell(client_.get(), BellMessage::callback, server_.get(), 20ms).code(), Errc::timed_out);
}

TEST_F(Bell, garbage_is_consumed_and_named) {
  ASSERT_EQ(send(client_.get(), "\x09", 1, 0), 1);
  ASSERT_EQ(send(client_.get(), "\x01\x01", 2, 0), 2);
  EXPECT_EQ(receive_bell(server_.get()).code(), Errc::bad_message);
  EXPECT_EQ(receive_bell(server_.get()).code(), Errc::bad_message);
  const auto other = make_socket_pair();
  ASSERT_TRUE(other && offer_on_bell(client_.get(), BellMessage::ring, other->first.get()));  // rings carry none
  EXPECT_EQ(receive_bell(server_.get()).code(), Errc::bad_message);
  auto news = receive_bell(server_.get());
  ASSERT_TRUE(news);
  EXPECT_FALSE(news->has_value());
}

TEST_F(Bell, hanging_up_is_seen_by_both) {
  client_.reset();
  EXPECT_EQ(receive_bell(server_.get()).code(), Errc::peer_gone);
  EXPECT_EQ(offer_on_bell(server_.get(), BellMessage::trap, server_.get()).code(), Errc::peer_gone);
}

}  // namespace
}  // namespace lrpc::shim
