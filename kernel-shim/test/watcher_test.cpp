#include "lrpc/detail/shim/system/watcher.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/fd.h"
#include "refused_calls.h"

namespace lrpc::shim {
namespace {

/// An object that a callback may own: its deleter uses the watcher once more.
std::shared_ptr<int> posts_when_it_goes(Watcher& watcher, std::promise<void>& posted) {
  return {new int(0), [&](const int* held) {
            delete held;
            EXPECT_TRUE(watcher.post(Watcher::Task([&] { posted.set_value(); })));
          }};
}

/// How many threads of this process have that name; others may be a sanitizer's.
std::size_t threads_called(const std::string& name) {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::getline(std::ifstream(task.path() / "comm"), found);
    count += found == name ? 1U : 0U;
  }
  return count;
}

TEST(Watcher, has_its_thread_from_the_start_and_only_one) {
  const std::string name = "from-the-start";
  Watcher watcher(name.c_str());
  EXPECT_EQ(threads_called(name), 0U);
  ASSERT_TRUE(watcher.start());
  EXPECT_TRUE(testing_lrpc::eventually([&] { return threads_called(name) == 1; }));
  const UniqueFd event(eventfd(1, EFD_CLOEXEC));
  std::promise<void> seen;
  const auto id = watcher.watch(event.get(), [&](Watcher::Event news) {
    watcher.unwatch(news.id);
    seen.set_value();
  });
  ASSERT_TRUE(id);
  seen.get_future().get();
  ASSERT_TRUE(watcher.start());
  EXPECT_EQ(threads_called(name), 1U);
}

TEST(Watcher, can_be_used_by_what_a_watch_held_when_it_is_unwatched) {
  std::promise<void> posted;
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  Watcher watcher("test");
  const auto id = watcher.watch(event.get(), [held = posts_when_it_goes(watcher, posted)](Watcher::Event) {});
  ASSERT_TRUE(id);
  watcher.unwatch(*id);
  posted.get_future().get();
}

TEST(Watcher, can_be_used_by_what_a_watch_held_that_unwatches_itself) {
  std::promise<void> posted;
  const UniqueFd event(eventfd(1, EFD_CLOEXEC));
  Watcher watcher("test");
  const auto id = watcher.watch(event.get(), [&watcher, held = posts_when_it_goes(watcher, posted)](
                                                 Watcher::Event seen) { watcher.unwatch(seen.id); });
  ASSERT_TRUE(id);
  posted.get_future().get();
  watcher.unwatch(*id);
}

TEST(Watcher, can_be_used_by_what_posted_work_held) {
  std::promise<void> posted;
  Watcher watcher("test");
  ASSERT_TRUE(watcher.post(Watcher::Task([held = posts_when_it_goes(watcher, posted)] {})));
  posted.get_future().get();
}

TEST(Watcher, can_be_used_by_what_a_watch_held_that_cannot_be_had) {
  std::promise<void> posted;
  Watcher watcher("test");
  EXPECT_FALSE(watcher.watch(-1, [held = posts_when_it_goes(watcher, posted)](Watcher::Event) {}));
  posted.get_future().get();
}

TEST(Watcher, names_the_limit_of_the_kernel_on_watched_descriptors) {
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  Watcher watcher("test");
  ASSERT_TRUE(watcher.start());
  bool refused = false;
  Result<Watcher::Id> id = Errc::timed_out;
  std::thread([&] {
    refused = testing_lrpc::refuse_calls(SYS_epoll_ctl, ENOSPC);
    id = watcher.watch(event.get(), [](Watcher::Event) {});
  }).join();
  if (!refused) GTEST_SKIP() << "no filters of seccomp can be set";
  EXPECT_EQ(id.code(), Errc::system_error);
  EXPECT_TRUE(id.error().text.ends_with("fs.epoll.max_user_watches allows")) << id.error().text;
}

TEST(Watcher, reports_an_end_before_the_news_that_came_after_it) {
  auto ending = make_socket_pair();
  ASSERT_TRUE(ending);
  const UniqueFd news(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  std::promise<void> inside;
  std::promise<void> go_on;
  std::promise<void> both;
  std::string order;
  Watcher watcher("test");
  ASSERT_TRUE(watcher.watch(ending->first.get(), [&](Watcher::Event seen) {
    order += "end ";
    watcher.unwatch(seen.id);
  }));
  ASSERT_TRUE(watcher.watch(news.get(), [&](Watcher::Event seen) {
    eventfd_t taken = 0;
    (void)eventfd_read(news.get(), &taken);
    order += "news ";
    if (order == "news ") {
      inside.set_value();
      go_on.get_future().get();
    } else {
      watcher.unwatch(seen.id);
      both.set_value();
    }
  }));
  inside.get_future().get();
  ending->second.reset();
  ASSERT_EQ(eventfd_write(news.get(), 1), 0);
  go_on.set_value();
  both.get_future().get();
  EXPECT_EQ(order, "news end news ");
}

/// Descriptors of several users with events, all of which the watcher sees at one look.
class WatcherTurns : public testing::Test {
 protected:
  using Callback = std::function<void()>;

  /// Adds a descriptor of `user` with an event. In its turn it reads the event, appends `letter` to `heard_`, and calls
  /// `then`.
  Watcher::Id add(uid_t user, char letter, Callback then = {}) {
    const UniqueFd& event = events_.emplace_back(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
    const auto watched = watcher_.watch(
        event.get(),
        [this, &event, letter, then = std::move(then)](Watcher::Event) {
          eventfd_t taken = 0;
          (void)eventfd_read(event.get(), &taken);
          heard_ += letter;
          if (then) then();
        },
        user);
    EXPECT_TRUE(watched);
    return watched ? *watched : 0;
  }
  /// The same, with a socket that has a message and whose other end is closed.
  void add_ending(uid_t user, char letter) {
    auto ends = make_socket_pair();
    ASSERT_TRUE(ends);
    ASSERT_EQ(::send(ends->second.get(), "m", 1, 0), 1);
    const UniqueFd& end = events_.emplace_back(std::move(ends->first));
    const auto ended = [this, letter](Watcher::Event event) {
      heard_ += letter;
      watcher_.unwatch(event.id);
    };
    EXPECT_TRUE(watcher_.watch(end.get(), ended, user, Watcher::For::messages));
  }
  /// Blocks the watcher until hear().
  void SetUp() override {
    ASSERT_TRUE(watcher_.post(Watcher::Task([this] {
      inside_.set_value();
      go_on_.get_future().get();
    })));
    inside_.get_future().get();
  }
  /// Returns the letters in the order of the turns, when no event is left.
  std::string hear() {
    go_on_.set_value();
    EXPECT_TRUE(testing_lrpc::eventually([&] {
      std::promise<std::size_t> heard;
      EXPECT_TRUE(watcher_.post(Watcher::Task([&] { heard.set_value(heard_.size()); })));
      return heard.get_future().get() == expected_;
    })) << heard_;
    return heard_;
  }

  std::size_t expected_ = 0;  ///< The number of events to wait for.

 private:
  std::promise<void> inside_;
  std::promise<void> go_on_;
  std::list<UniqueFd> events_;
  std::string heard_;

 protected:
  Watcher watcher_{"test"};
};

TEST_F(WatcherTurns, are_taken_by_users_however_many_descriptors_of_one_have_news) {
  for (int i = 0; i < 40; ++i) add(1, 'a');
  add(2, 'b');
  for (int i = 0; i < 3; ++i) add(3, 'c');
  expected_ = 44;
  EXPECT_EQ(hear(), "abcacac" + std::string(37, 'a'));
}

TEST_F(WatcherTurns, are_taken_by_sockets_with_messages_although_they_have_ended) {
  for (int i = 0; i < 20; ++i) add_ending(1, 'a');
  add(2, 'b');
  expected_ = 21;
  EXPECT_EQ(hear(), "ab" + std::string(19, 'a'));
}

TEST_F(WatcherTurns, do_not_come_for_who_is_unwatched_in_line) {
  std::vector<Watcher::Id> others;
  add(1, 'a', [&] {
    for (const Watcher::Id other : others) watcher_.unwatch(other);
  });
  others.push_back(add(1, 'x'));
  for (int i = 0; i < 2; ++i) others.push_back(add(2, 'x'));
  add(3, 'c');
  add(1, 'd');
  expected_ = 3;
  EXPECT_EQ(hear(), "acd");
}

}  // namespace
}  // namespace lrpc::shim
