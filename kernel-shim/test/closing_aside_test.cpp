// Descriptors that are closed aside (peer_socket.h): how many may wait, and who closes them if no thread can be
// started.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "binder/aside.h"
#include "binder/nursery.h"
#include "busy_closers.h"
#include "eventually.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/closing_again.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/system/handover.h"
#include "refused_calls.h"
#include "slow_to_close.h"

namespace lrpc::shim {
namespace {

using testing_lrpc::eventually;
using testing_lrpc::LadenSocket;
using testing_lrpc::Slow;
using testing_lrpc::SlowToClose;

/// How many threads of this process have that name.
std::size_t threads_named(const std::string& name) {
  std::size_t count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "comm");
    std::string its;
    if (std::getline(file, its) && its == name) ++count;
  }
  return count;
}

/// Nothing can be refused here: the sockets exist already, and must be closed.
TEST(ClosingAside, has_a_bound_on_what_waits_and_what_is_over_that_lingers_for_nobody) {
  std::vector<std::unique_ptr<SlowToClose>> slow;
  std::vector<std::weak_ptr<const void>> held;
  constexpr unsigned kMost = kMostAsideOfOne + kMostToClose;
  for (unsigned i = 0; i < kMost + 100; ++i) {
    auto [here, there] = *make_socket_pair();
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
    PeerSocket(std::move(here), PeerSocket::Made::here, {.user = 10, .account = std::move(account)}).reset();
  }
  const auto waiting = [&] { return std::ranges::count_if(held, [](const auto& one) { return !one.expired(); }); };
  EXPECT_TRUE(eventually([&] { return waiting() <= kMost; })) << waiting();
  EXPECT_TRUE(eventually([] { return threads_named("lrpc-ending") + threads_named("lrpc-surplus") == 0; }));
  slow.clear();
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
}

/// A thread that can start no other closes a descriptor aside. Returns the descriptor's account. Nothing: threads
/// cannot be refused here.
std::optional<std::weak_ptr<const void>> close_without_a_thread(uid_t user) {
  auto account = std::make_shared<int>();
  const std::weak_ptr<const void> held = account;
  auto [here, there] = *make_socket_pair();
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

TEST(ClosingAside, is_tried_again_after_an_attempt_that_came_too_early) {
  Watcher watcher("lrpc-test");
  ASSERT_TRUE(watcher.start());
  const ClosingAgain again(watcher);
  ASSERT_TRUE(again.soon());
  std::this_thread::sleep_for(kClosingPause / 2);
  const auto held = close_without_a_thread(17);
  if (!held) GTEST_SKIP() << "no thread can be refused here";
  EXPECT_TRUE(eventually([&] { return held->expired(); }));
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

/// All watchers but one are busy.
TEST(ClosingAside, is_tried_again_by_a_watcher_while_others_are_busy) {
  std::promise<void> inside;
  std::promise<void> go_on;
  Watcher busy("lrpc-busy");
  Watcher watcher("lrpc-test");
  ASSERT_TRUE(watcher.start());
  const ClosingAgain first(busy);
  const ClosingAgain second(watcher);
  const ClosingAgain third(busy);
  ASSERT_TRUE(busy.post(Watcher::Task([&] {
    inside.set_value();
    go_on.get_future().wait();
  })));
  inside.get_future().wait();
  const auto held = close_without_a_thread(15);
  EXPECT_TRUE(!held || eventually([&] { return held->expired(); }));
  go_on.set_value();
  if (!held) GTEST_SKIP() << "no thread can be refused here";
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

/// The thread that clears what exceeds the bound needs another thread, which it cannot start here.
TEST(ClosingAside, keeps_what_is_over_the_bound_and_closes_it_later_where_no_thread_could_be_had_for_that) {
  constexpr uid_t kUser = 16;
  constexpr std::size_t kOver = 100;
  auto slow = make(Slow::stuck_file);  // its wait is not ended by a freezer
  if (slow == nullptr) GTEST_SKIP() << "cannot be made here: a FUSE file";
  for (unsigned i = 0; i < kMostAsideOfOne; ++i)
    close_aside(UniqueFd(fcntl(slow->get(), F_DUPFD_CLOEXEC, 0)), {.user = kUser});
  EXPECT_TRUE(eventually([] { return testing_lrpc::threads_in_close() >= kMostAsideOfOne; }));
  std::vector<std::weak_ptr<const void>> held;
  std::thread closer([&] {
    const testing_lrpc::NoThreadsOfThreads refused;
    if (!refused.can_be_had()) return;
    for (std::size_t i = 0; i < kMostToClose + kOver; ++i) {
      auto account = std::make_shared<int>();
      held.emplace_back(account);
      close_aside(UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)), {.user = kUser, .account = std::move(account)});
    }
    EXPECT_TRUE(eventually([&] { return refused.count() != 0; }));
  });
  closer.join();
  if (held.empty()) GTEST_SKIP() << "no thread can be refused here";
  const auto waiting = [&] {
    return static_cast<std::size_t>(std::ranges::count_if(held, [](const auto& one) { return !one.expired(); }));
  };
  EXPECT_EQ(waiting(), kMostToClose + kOver);
  Watcher watcher("lrpc-test");
  ASSERT_TRUE(watcher.start());  // otherwise the clearing thread, which can start no thread, might have to start it
  const ClosingAgain again(watcher);
  EXPECT_TRUE(eventually([&] { return waiting() <= kMostToClose; })) << waiting();
  slow.reset();
  EXPECT_TRUE(eventually([&] { return waiting() == 0; })) << waiting();
}

// ---- What all users together may occupy ----

constexpr uid_t kFirstUser = 1000;

/// How many threads have the first thread's name: the first one, and those that have not set their name yet.
std::size_t threads_without_a_name() {
  std::string of_the_first;
  std::getline(std::ifstream("/proc/self/comm"), of_the_first);
  return threads_named(of_the_first);
}

/// Closes a copy of a slow descriptor aside. Any number of copies is slow, because a file is flushed at each close(2).
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

/// Runs in a process that may have `limit` descriptors. Returns 0 if all is right.
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
  bool right = eventually([&] { return fcntl(own, F_GETFD) < 0; });  // no thread has a copy that its end would close
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
  // The last one is added while no thread is clearing.
  right = right && eventually([&] { return threads_without_a_name() == idle && threads_named("lrpc-surplus") == 0; });
  close_a_plain_one(0);
  right = right && eventually([&] { return waiting() == kThreads + most; });
  if (!right) std::fprintf(stderr, "%zu wait\n", waiting());
  slow.reset();
  return right && eventually([&] { return waiting() == 0; }) ? 0 : 1;
}

TEST(ClosingAside, keeps_a_bounded_number_of_descriptors_for_all_users_or_a_part_of_what_the_process_can_have) {
  if (make(Slow::stuck_file) == nullptr) GTEST_SKIP() << "cannot be made here: a FUSE file";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has closed nothing aside yet
  constexpr rlim_t kFew = 1600;
  constexpr rlim_t kMany = 2 * kPartToClose * kMostToCloseOfAll;
  EXPECT_EXIT(std::exit(bound_of_all_descriptors(kFew, kFew / kPartToClose)), testing::ExitedWithCode(0), "");
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < kMany) GTEST_SKIP() << "so many descriptors are not allowed here: " << kMany;
  EXPECT_EXIT(std::exit(bound_of_all_descriptors(kMany, kMostToCloseOfAll)), testing::ExitedWithCode(0), "");
}

/// The thread that emptied its table lives on, and so must the nursery.
TEST(Nursery, that_lacked_memory_for_its_table_tries_again) {
  if (has_thread_sanitizer()) GTEST_SKIP() << "there is no nursery";
  const UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const UniqueFd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, self.get(), self.get(), 0)));
  if (!copy) GTEST_SKIP() << "a thread apart could fetch no descriptors here";
  auto& nursery = *new Nursery;  // NOLINT: leaked on purpose, see above
  static std::atomic<bool> started{false};
  const auto body = [](void*) -> void* { return started = true, nullptr; };
  bool filtered = false;
  bool began = false;
  std::thread([&] {
    filtered = testing_lrpc::refuse_calls(SYS_close_range, ENOMEM);
    began = nursery.start(body, nullptr);
  }).join();
  if (!filtered) GTEST_SKIP() << "no filters of seccomp can be set";
  EXPECT_FALSE(began);
  EXPECT_TRUE(eventually([&] { return nursery.start(body, nullptr); }));
  EXPECT_TRUE(eventually([&] { return started.load(); }));
}

}  // namespace
}  // namespace lrpc::shim
