#include "lrpc/detail/shim/binder/peer_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "binder/aside.h"
#include "binder/take_in.h"
#include "eventually.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/growth.h"
#include "slow_to_close.h"

namespace lrpc::shim {
namespace {

using testing_lrpc::eventually;
using testing_lrpc::LadenSocket;
using testing_lrpc::Slow;
using testing_lrpc::SlowToClose;

std::pair<UniqueFd, UniqueFd> socket_pair() {
  auto made = make_socket_pair();
  return made ? *std::move(made) : std::pair<UniqueFd, UniqueFd>();
}

PeerSocket made_here(UniqueFd fd, Stranger stranger = {}) {
  return {std::move(fd), PeerSocket::Made::here, std::move(stranger)};
}

TEST(APeerSocket, closes_at_once_what_holds_no_descriptors) {
  auto [here, there] = socket_pair();
  for (std::size_t i = 0; i < 10; ++i)
    ASSERT_EQ(send(there.get(), "xyz", i % 4, 0), i % 4) << "an empty one among them";
  auto account = std::make_shared<int>();
  const std::weak_ptr<int> held = account;
  PeerSocket socket = made_here(std::move(here), {.user = 1, .account = std::move(account)});
  socket.reset();
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(send(there.get(), "x", 1, MSG_NOSIGNAL), -1);
}

/// Whether this thread closes the socket.
bool closes_here(PeerSocket::Made made, int messages) {
  auto [here, there] = socket_pair();
  for (int i = 0; i < messages; ++i) EXPECT_EQ(send(there.get(), "x", 1, 0), 1);
  std::atomic<std::thread::id> closed_by;
  const auto note = [&closed_by](const void*) { closed_by = std::this_thread::get_id(); };
  PeerSocket(std::move(here), made, {.user = 1, .account = std::shared_ptr<const void>(nullptr, note)}).reset();
  EXPECT_TRUE(eventually([&] { return closed_by.load() != std::thread::id(); }));
  return closed_by.load() == std::this_thread::get_id();
}

/// Other work may wait for the closing thread.
TEST(APeerSocket, leaves_many_messages_to_another_thread) {
  EXPECT_TRUE(closes_here(PeerSocket::Made::here, 16));
  EXPECT_FALSE(closes_here(PeerSocket::Made::here, 17));
}

TEST(APeerSocket, that_refuses_descriptors_is_closed_at_once_with_all_that_is_in_it) {
  EXPECT_TRUE(closes_here(PeerSocket::Made::refusing, 100));
}

TEST(APeerSocket, takes_nothing_once_it_was_told_so_and_sees_the_end_all_the_same) {
  auto [here, there] = socket_pair();
  PeerSocket socket = made_here(std::move(here));
  socket.take_nothing();
  EXPECT_EQ(send(there.get(), "x", 1, MSG_NOSIGNAL), -1);
  pollfd entry{socket.get(), 0, 0};
  EXPECT_EQ(poll(&entry, 1, 0), 0);
  there.reset();
  EXPECT_EQ(poll(&entry, 1, 0), 1);
  EXPECT_NE(entry.revents & POLLHUP, 0);
}

/// Nobody waits for descriptors that are slow to close. There is no assertion for that: the test would hang.
class WithSomethingSlow : public testing::TestWithParam<Slow> {
 protected:
  void SetUp() override {
    slow_ = make(GetParam());
    if (slow_ == nullptr) GTEST_SKIP() << "cannot be made here: " << testing_lrpc::name_of(GetParam());
    auto [here, there] = socket_pair();
    here_ = std::move(here);
    there_ = std::move(there);
  }
  void send_slow() {
    ASSERT_TRUE(LadenSocket::send(there_.get(), slow_->get()));
    slow_->give_away();
  }
  UniqueFd here_;
  UniqueFd there_;
  std::unique_ptr<SlowToClose> slow_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, WithSomethingSlow, testing::ValuesIn(testing_lrpc::kSlow),
                         [](const auto& kind) { return testing_lrpc::name_of(kind.param); });

TEST_P(WithSomethingSlow, a_peer_socket_is_closed_elsewhere_and_keeps_its_account_as_long) {
  auto account = std::make_shared<int>();
  const std::weak_ptr<int> held = account;
  PeerSocket socket = made_here(std::move(here_), {.user = 2, .account = std::move(account)});
  ASSERT_EQ(send(there_.get(), "plain", 5, 0), 5);
  send_slow();
  socket.reset();
  // A file's FLUSH is sent by close(2) on a descriptor, which nobody has received.
  if (GetParam() != Slow::stuck_file) {
    EXPECT_FALSE(held.expired());
  }
  slow_.reset();
  EXPECT_TRUE(eventually([&] { return held.expired(); }));
}

TEST_P(WithSomethingSlow, a_bell_refuses_it_or_offers_it_and_neither_waits) {
  ASSERT_TRUE(offer_on_bell(there_.get(), BellMessage::callback, slow_->get()));
  slow_->give_away();
  ring_bell(there_.get());
  {
    const auto news = receive_bell(here_.get(), {.user = 3});
    EXPECT_EQ(news.has_value(), GetParam() == Slow::laden) << "a socket is a socket, whatever lies in it";
  }
  const auto ring = receive_bell(here_.get(), {.user = 3});
  ASSERT_TRUE(ring && ring->has_value());
  EXPECT_EQ((*ring)->message, BellMessage::ring);
}

TEST_P(WithSomethingSlow, a_line_says_that_it_is_no_region) {
  ASSERT_TRUE(LadenSocket::send(there_.get(), slow_->get()));
  slow_->give_away();
  EXPECT_EQ(receive_growth(here_.get(), std::chrono::milliseconds(1), {.user = 4}).code(), Errc::bad_message);
}

TEST_P(WithSomethingSlow, a_message_from_a_stranger_brings_it_to_nobody) {
  ASSERT_TRUE(LadenSocket::send(there_.get(), slow_->get()));
  slow_->give_away();
  const auto left = receive_message(here_.get(), std::chrono::milliseconds(0), Attachments::none);
  EXPECT_EQ(left.code(), Errc::bad_message);
  const auto taken = receive_message(here_.get(), std::chrono::milliseconds(0), Attachments::taken_in, {.user = 5});
  EXPECT_EQ(taken.code(), Errc::bad_message);
}

TEST_P(WithSomethingSlow, one_user_holds_up_a_few_threads_and_no_other_user) {
  // A different user for each kind: threads occupied by the previous kind may not be free yet.
  const uid_t user = 60 + static_cast<uid_t>(GetParam());
  std::vector<std::unique_ptr<SlowToClose>> all;
  Errc said = Errc::ok;
  // Linux ends the wait for a lingering connection if it freezes the waiting thread. Then it is tried again.
  for (int round = 0; said != Errc::peer_gone && round < 10; ++round) {
    for (unsigned i = 0; said != Errc::peer_gone && i < kMostAsideOfOne; ++i) {
      auto slow = make(GetParam());
      ASSERT_NE(slow, nullptr);
      ASSERT_TRUE(LadenSocket::send(there_.get(), slow->get()));
      slow->give_away();
      all.push_back(std::move(slow));
      said = receive_bell(here_.get(), {.user = user}).code();
      if (round == 0) {
        ASSERT_EQ(said, Errc::bad_message);
      }
    }
    for (unsigned i = 0; said != Errc::peer_gone && i <= kMostToClose; ++i) {
      const auto plain = make_socket_pair();
      ASSERT_TRUE(plain && LadenSocket::send(there_.get(), plain->first.get()));
      said = receive_bell(here_.get(), {.user = user}).code();
    }
  }
  // Such a fault shows with the other kinds.
  if (said != Errc::peer_gone && GetParam() == Slow::laden)
    GTEST_SKIP() << "frozen before all threads waited, ten times";
  EXPECT_EQ(said, Errc::peer_gone) << "what is over that is left where it is";
  auto [here, there] = socket_pair();
  auto offered = make_socket_pair();
  ASSERT_TRUE(offered && offer_on_bell(there.get(), BellMessage::callback, offered->first.get()));
  const auto news = receive_bell(here.get(), {.user = 7});
  EXPECT_TRUE(news && news->has_value() && (*news)->offered);
}

TEST(TakingIn, brings_what_is_wanted_with_bytes_and_credentials) {
  auto [here, there] = socket_pair();
  const int on = 1;
  ASSERT_EQ(setsockopt(here.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  const UniqueFd memory(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_TRUE(LadenSocket::send(there.get(), memory.get()));
  std::array<std::byte, 8> room{};
  const Intake taken = take_in(here.get(), room, {.user = 8});
  EXPECT_EQ(taken.size, 1);
  EXPECT_EQ(room[0], std::byte{'x'});
  ASSERT_EQ(taken.fds.size(), 1U);
  EXPECT_GE(fcntl(taken.fds.front().get(), F_GET_SEALS), 0);
  EXPECT_EQ(fcntl(taken.fds.front().get(), F_GETFD), FD_CLOEXEC);
  ASSERT_TRUE(taken.sender);
  EXPECT_EQ(taken.sender->pid, getpid());
  const Intake nothing = take_in(here.get(), room, {.user = 8});
  EXPECT_EQ(nothing.size, -1);
  EXPECT_EQ(nothing.err, EAGAIN);
}

}  // namespace
}  // namespace lrpc::shim
