#include "lrpc/shim/binder/peer_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "binder/aside.h"
#include "binder/take_in.h"
#include "eventually.h"
#include "lrpc/shim/binder/bell.h"
#include "lrpc/shim/binder/binder_protocol.h"
#include "lrpc/shim/binder/closing_again.h"
#include "lrpc/shim/binder/growth.h"
#include "refused_calls.h"
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

/// Whether this thread closes it.
bool closes_here(PeerSocket::Made made, int messages) {
  auto [here, there] = socket_pair();
  for (int i = 0; i < messages; ++i) EXPECT_EQ(send(there.get(), "x", 1, 0), 1);
  std::atomic<std::thread::id> closed_by;
  const auto note = [&closed_by](const void*) { closed_by = std::this_thread::get_id(); };
  PeerSocket(std::move(here), made, {.user = 1, .account = std::shared_ptr<const void>(nullptr, note)}).reset();
  EXPECT_TRUE(eventually([&] { return closed_by.load() != std::thread::id(); }));
  return closed_by.load() == std::this_thread::get_id();
}

/// Somebody else may be waiting for the thread that closes it.
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

/// What is slow to close is never waited for. What would be asserted if it were: nothing, for the test would hang.
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
  // A file's FLUSH comes of close(2) on a descriptor, and nobody has received it.
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
  // Of each kind another user: what the last one has held up may not have ended yet.
  const uid_t user = 60 + static_cast<uid_t>(GetParam());
  std::vector<std::unique_ptr<SlowToClose>> all;
  Errc said = Errc::ok;
  // Linux ends the wait for a lingering connection when it freezes the thread that waits: then once more.
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
  // The other kinds tell what is wrong then.
  if (said != Errc::peer_gone && GetParam() == Slow::laden)
    GTEST_SKIP() << "frozen before all threads waited, ten times";
  EXPECT_EQ(said, Errc::peer_gone) << "what is over that is left where it is";
  auto [here, there] = socket_pair();
  auto offered = make_socket_pair();
  ASSERT_TRUE(offered && offer_on_bell(there.get(), BellMessage::callback, offered->first.get()));
  const auto news = receive_bell(here.get(), {.user = 7});
  EXPECT_TRUE(news && news->has_value() && (*news)->offered);
}

/// Threads of this process that have that name.
std::size_t threads_named(const std::string& name) {
  std::size_t count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "comm");
    std::string its;
    if (std::getline(file, its) && its == name) ++count;
  }
  return count;
}

/// Nothing could be refused here: the sockets are there, and have to go.
TEST(ClosingAside, has_a_bound_on_what_waits_and_what_is_over_that_lingers_for_nobody) {
  std::vector<std::unique_ptr<SlowToClose>> slow;
  std::vector<std::weak_ptr<const void>> held;
  constexpr unsigned kMost = kMostAsideOfOne + kMostToClose;
  for (unsigned i = 0; i < kMost + 100; ++i) {
    auto [here, there] = socket_pair();
    if (i < kMostAsideOfOne || i % 50 == 0) {
      auto& one = slow.emplace_back(make(Slow::lingering));
      ASSERT_NE(one, nullptr);
      ASSERT_TRUE(LadenSocket::send(there.get(), one->get()));
      one->give_away();
    } else {
      const auto plain = make_socket_pair();
      ASSERT_TRUE(plain && LadenSocket::send(there.get(), plain->first.get()));
    }
    auto account = std::make_shared<int>();
    held.emplace_back(account);
    made_here(std::move(here), {.user = 10, .account = std::move(account)}).reset();
  }
  const auto waiting = [&] { return std::ranges::count_if(held, [](const auto& one) { return !one.expired(); }); };
  EXPECT_TRUE(eventually([&] { return waiting() <= kMost; })) << waiting();
  EXPECT_TRUE(eventually([] { return threads_named("lrpc-ending") + threads_named("lrpc-surplus") == 0; }));
  slow.clear();
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
}

/// Something is to be closed aside by a thread that can start none for it: its account. Nothing: that cannot be had.
std::optional<std::weak_ptr<const void>> close_without_a_thread(uid_t user) {
  auto account = std::make_shared<int>();
  const std::weak_ptr<const void> held = account;
  auto [here, there] = socket_pair();
  bool refused = false;
  std::thread closer([&refused, user, fd = std::move(here), account = std::move(account)]() mutable {
    refused = testing_lrpc::refuse_threads();
    close_aside(std::move(fd), {.user = user, .account = std::move(account)});
  });
  closer.join();
  if (!refused) return std::nullopt;
  return held;
}

TEST(ClosingAside, is_done_later_where_no_thread_could_be_had_though_nothing_else_comes) {
  Watcher watcher("lrpc-test");
  ASSERT_TRUE(watcher.start());
  const ClosingAgain again(watcher);
  const auto held = close_without_a_thread(11);
  if (!held) GTEST_SKIP() << "no thread can be refused here";
  EXPECT_TRUE(eventually([&] { return held->expired(); }));
  EXPECT_FALSE(close_aside_again()) << "then nothing waits, and nobody is woken for it";
}

TEST(ClosingAside, is_tried_again_by_another_watcher_if_the_one_that_was_to_ends) {
  Watcher watcher("lrpc-test");
  ASSERT_TRUE(watcher.start());
  auto ending = std::make_unique<Watcher>("lrpc-ending");
  ASSERT_TRUE(ending->start());
  auto first = std::make_unique<ClosingAgain>(*ending);
  const ClosingAgain second(watcher);
  const auto held = close_without_a_thread(12);
  if (!held) GTEST_SKIP() << "no thread can be refused here";
  first.reset();
  ending.reset();
  EXPECT_TRUE(eventually([&] { return held->expired(); }));
}

TEST(ClosingAside, is_tried_again_by_a_watcher_that_comes_later) {
  const auto held = close_without_a_thread(14);
  if (!held) GTEST_SKIP() << "no thread can be refused here";
  Watcher watcher("lrpc-test");
  ASSERT_TRUE(watcher.start());
  const ClosingAgain again(watcher);
  EXPECT_TRUE(eventually([&] { return held->expired(); }));
}

TEST(ClosingAside, is_tried_again_by_whoever_has_no_watcher) {
  const auto held = close_without_a_thread(13);
  if (!held) GTEST_SKIP() << "no thread can be refused here";
  EXPECT_TRUE(eventually([&] { return !close_aside_again() && held->expired(); }));
}

// ---- What all users together hold up ----

constexpr uid_t kFirstUser = 1000;

/// Of this process: its first one, the test's, and those that have not yet said their names.
std::size_t threads_without_a_name() {
  std::string of_the_first;
  std::getline(std::ifstream("/proc/self/comm"), of_the_first);
  return threads_named(of_the_first);
}

/// A copy of what is slow to close, however many there are: a file is flushed at each close(2).
void close_one_aside(const SlowToClose& slow, uid_t user, std::shared_ptr<const void> account = {}) {
  close_aside(UniqueFd(fcntl(slow.get(), F_DUPFD_CLOEXEC, 0)), {.user = user, .account = std::move(account)});
}

TEST(ClosingAside, holds_up_a_bounded_number_of_threads_for_all_users_and_one_for_each_user_beyond) {
  ASSERT_TRUE(eventually([] { return threads_named("lrpc-unread") == 0; })) << "those of an earlier test";
  const auto slow = make(Slow::stuck_file);
  if (slow == nullptr) GTEST_SKIP() << "cannot be made here: a FUSE file";
  const std::size_t before = threads_without_a_name();
  constexpr uid_t kFillAll = kMostAside / kMostAsideOfOne;
  constexpr uid_t kBeyond = 5;
  for (uid_t i = 0; i < kFillAll + kBeyond; ++i)
    for (unsigned n = 0; n < kMostAsideOfOne; ++n) close_one_aside(*slow, kFirstUser + i);
  EXPECT_TRUE(eventually([&] { return threads_without_a_name() == before; })) << "all that were started have theirs";
  EXPECT_EQ(threads_named("lrpc-unread"), kMostAside + kBeyond);
}

/// In a process that may have so many descriptors. 0: as it must be.
int bound_of_all_descriptors(rlim_t limit, std::size_t most) {
  const rlimit wanted{limit, limit};
  if (setrlimit(RLIMIT_NOFILE, &wanted) != 0) return 2;
  auto slow = make(Slow::stuck_file);
  std::vector<std::weak_ptr<const void>> held;
  const auto account = [&held] {
    auto made = std::make_shared<int>();
    held.emplace_back(made);
    return made;
  };
  const auto waiting = [&] {
    return static_cast<std::size_t>(std::ranges::count_if(held, [](const auto& one) { return !one.expired(); }));
  };
  constexpr uid_t kUsers = 8;
  constexpr std::size_t kThreads = kUsers * kMostAsideOfOne;
  for (std::size_t i = 0; i < kThreads; ++i) close_one_aside(*slow, kFirstUser + i % kUsers, account());
  const int own = slow->get();
  slow->give_away();
  bool right = eventually([&] { return fcntl(own, F_GETFD) < 0; });  // no thread that ends has a copy
  right = right && eventually([] { return threads_named("lrpc-unread") == kThreads; });
  const std::size_t idle = threads_without_a_name();
  const auto close_a_plain_one = [&](std::size_t i) {
    close_aside(UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)),
                {.user = kFirstUser + static_cast<uid_t>(i % kUsers), .account = account()});
  };
  for (std::size_t i = 0; i < most; ++i) close_a_plain_one(i);
  right = right && waiting() == kThreads + most;
  constexpr std::size_t kTooMany = 50;
  for (std::size_t i = 0; i < kTooMany; ++i) close_a_plain_one(i);
  // The last one comes when nothing is being cleared away.
  right = right && eventually([&] { return threads_without_a_name() == idle && threads_named("lrpc-surplus") == 0; });
  close_a_plain_one(0);
  right = right && eventually([&] { return waiting() == kThreads + most; });
  if (!right) std::fprintf(stderr, "%zu wait\n", waiting());
  slow.reset();
  return right && eventually([&] { return waiting() == 0; }) ? 0 : 1;
}

TEST(ClosingAside, keeps_a_bounded_number_of_descriptors_for_all_users_or_a_part_of_what_the_process_can_have) {
  if (make(Slow::stuck_file) == nullptr) GTEST_SKIP() << "cannot be made here: a FUSE file";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has closed nothing aside yet
  constexpr rlim_t kFew = 1600;
  constexpr rlim_t kMany = 2 * kPartToClose * kMostToCloseOfAll;
  EXPECT_EXIT(std::exit(bound_of_all_descriptors(kFew, kFew / kPartToClose)), testing::ExitedWithCode(0), "");
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < kMany) GTEST_SKIP() << "so many descriptors are not allowed here: " << kMany;
  EXPECT_EXIT(std::exit(bound_of_all_descriptors(kMany, kMostToCloseOfAll)), testing::ExitedWithCode(0), "");
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
