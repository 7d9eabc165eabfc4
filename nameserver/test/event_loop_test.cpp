// One conformance suite for all back ends of the event loop.
#include "loop/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <thread>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "refused_calls.h"
#include "test_peer.h"

namespace lrpc::nameserver {
namespace {

using std::chrono::milliseconds;

class EventLoops : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    fds_before_ = test::open_fds();
    auto loop = EventLoop::create(GetParam());
    if (!loop) GTEST_SKIP() << loop.error().message();
    loop_ = std::move(*loop);
    auto pair = shim::make_socket_pair();
    ASSERT_TRUE(pair);
    here_ = std::move(pair->first);
    there_ = std::move(pair->second);
    guard_ = loop_->after(test::kPatience, [this] {
      ADD_FAILURE() << "the loop was not stopped in time";
      loop_->stop();
    });
  }
  void TearDown() override {
    loop_.reset();
    here_.reset();
    there_.reset();
    // The kernel closes a ring some time later.
    EXPECT_TRUE(test::eventually([this] { return test::open_fds() == fds_before_; }));
  }

  EventLoop::WatchId watch(int fd, Interest interest, EventLoop::Handler handler) {
    auto watched = loop_->watch(fd, interest, std::move(handler));
    EXPECT_TRUE(watched) << watched.error().message();
    return watched ? *watched : 0;
  }
  void put(int fd) { ASSERT_EQ(::send(fd, "x", 1, 0), 1); }
  void take(int fd) {
    char byte = 0;
    ASSERT_EQ(::recv(fd, &byte, 1, MSG_DONTWAIT), 1);
  }
  void run() {
    const auto status = loop_->run();
    EXPECT_TRUE(status) << status.error().message();
  }
  /// Stops the loop after it has delivered everything that is ready by then.
  void stop_soon(milliseconds delay = milliseconds(20)) {
    loop_->after(delay, [this] { loop_->stop(); });
  }

  std::unique_ptr<EventLoop> loop_;
  UniqueFd here_;
  UniqueFd there_;
  EventLoop::TimerId guard_;
  std::size_t fds_before_ = 0;
};

TEST_P(EventLoops, a_handler_hears_of_what_was_there_before_and_of_what_comes) {
  int heard = 0;
  put(there_.get());
  watch(here_.get(), {.readable = true}, [&](Readiness readiness) {
    EXPECT_TRUE(readiness.readable);
    EXPECT_FALSE(readiness.writable);
    take(here_.get());
    if (++heard == 3) return loop_->stop();
    put(there_.get());
  });
  run();
  EXPECT_EQ(heard, 3);
}

TEST_P(EventLoops, a_handler_that_leaves_something_is_called_again) {
  for (int i = 0; i < 5; ++i) put(there_.get());
  int heard = 0;
  watch(here_.get(), {.readable = true}, [&](Readiness) {
    take(here_.get());
    if (++heard == 5) loop_->stop();
  });
  run();
  EXPECT_EQ(heard, 5);
}

TEST_P(EventLoops, a_step_does_what_there_is_to_do_and_waits_for_nothing) {
  int heard = 0;
  int fired = 0;
  watch(here_.get(), {.readable = true}, [&](Readiness) {
    take(here_.get());
    ++heard;
  });
  const auto step = [this] {
    const auto stepped = loop_->step();
    EXPECT_TRUE(stepped) << stepped.error().message();
    return stepped && *stepped;
  };
  EXPECT_TRUE(test::eventually([&] { return !step(); })) << "with nothing to do a step comes back, and says so";
  EXPECT_EQ(heard, 0);
  put(there_.get());
  EXPECT_TRUE(test::eventually([&] { return step() && heard == 1; }));
  loop_->after(milliseconds(0), [&] { ++fired; });
  EXPECT_TRUE(test::eventually([&] { return step() && fired == 1; }));
  EXPECT_EQ(heard, 1);
}

TEST_P(EventLoops, a_handler_is_not_called_without_a_reason) {
  int heard = 0;
  put(there_.get());
  watch(here_.get(), {.readable = true}, [&](Readiness) {
    take(here_.get());
    ++heard;
  });
  stop_soon(milliseconds(50));
  run();
  EXPECT_EQ(heard, 1);
}

TEST_P(EventLoops, interest_can_change_and_can_be_nothing) {
  std::string heard;
  EventLoop::WatchId id = 0;
  put(there_.get());
  id = watch(here_.get(), {.writable = true}, [&](Readiness readiness) {
    if (readiness.writable) {
      heard += 'w';
      EXPECT_TRUE(loop_->change(id, {.readable = true}));
    } else if (readiness.readable) {
      heard += 'r';
      EXPECT_TRUE(loop_->change(id, {}));  // does not take the byte
      stop_soon();
    }
  });
  run();
  EXPECT_EQ(heard, "wr");
}

TEST_P(EventLoops, a_hang_up_is_heard_whatever_the_interest) {
  bool heard = false;
  const auto id = watch(here_.get(), {}, [&](Readiness readiness) {
    EXPECT_TRUE(readiness.hung_up);
    heard = true;
    loop_->stop();
  });
  loop_->after(milliseconds(5), [&] { there_.reset(); });
  run();
  EXPECT_TRUE(heard);
  loop_->forget(id);
}

TEST_P(EventLoops, a_half_closed_peer_is_a_hang_up_too) {
  bool heard = false;
  const auto id = watch(here_.get(), {.readable = true}, [&](Readiness readiness) {
    EXPECT_TRUE(readiness.readable);
    EXPECT_TRUE(readiness.hung_up);
    heard = true;
    loop_->stop();
  });
  ::shutdown(there_.get(), SHUT_WR);
  run();
  EXPECT_TRUE(heard);
  loop_->forget(id);
}

TEST_P(EventLoops, a_forgotten_watch_is_not_called_even_for_readiness_already_seen) {
  // Both are ready in the same round. The first one that is called forgets the other.
  put(there_.get());
  put(here_.get());
  int heard = 0;
  EventLoop::WatchId one = 0;
  EventLoop::WatchId other = 0;
  one = watch(here_.get(), {.readable = true}, [&](Readiness) {
    ++heard;
    loop_->forget(other);
    loop_->forget(one);
  });
  other = watch(there_.get(), {.readable = true}, [&](Readiness) {
    ++heard;
    loop_->forget(one);
    loop_->forget(other);
  });
  stop_soon();
  run();
  EXPECT_EQ(heard, 1);
}

TEST_P(EventLoops, a_number_that_is_used_again_belongs_to_the_new_watch) {
  int old_heard = 0;
  int new_heard = 0;
  const int number = here_.get();
  const auto id = watch(number, {.readable = true}, [&](Readiness) { ++old_heard; });
  loop_->after(milliseconds(5), [&] {
    loop_->forget(id);
    auto pair = shim::make_socket_pair();
    ASSERT_TRUE(pair);
    ASSERT_EQ(::dup3(pair->first.get(), number, O_CLOEXEC), number);
    there_ = std::move(pair->second);
    watch(number, {.readable = true}, [&](Readiness) {
      take(here_.get());
      ++new_heard;
      loop_->stop();
    });
    put(there_.get());
  });
  run();
  EXPECT_EQ(old_heard, 0);
  EXPECT_EQ(new_heard, 1);
}

TEST_P(EventLoops, a_socket_closed_after_forget_hangs_up_at_its_peer) {
  const auto id = watch(here_.get(), {.readable = true}, [](Readiness) {});
  watch(there_.get(), {.readable = true}, [&](Readiness readiness) {
    EXPECT_TRUE(readiness.hung_up);
    loop_->stop();
  });
  loop_->after(milliseconds(5), [&] {
    loop_->forget(id);
    here_.reset();
  });
  run();
}

TEST_P(EventLoops, after_run_the_kernel_holds_no_watched_socket_open) {
  watch(here_.get(), {.readable = true}, [](Readiness) {});
  stop_soon(milliseconds(0));
  run();
  here_.reset();
  pollfd entry{there_.get(), 0, 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 1);
}

TEST_P(EventLoops, timers_fire_in_order_and_not_too_early) {
  std::string order;
  std::vector<EventLoop::TimerId> timers;
  EventLoop::Clock::time_point begin;
  do {  // repeated if setting them took so long that they are due in another order
    for (const EventLoop::TimerId timer : timers) loop_->cancel(timer);
    begin = EventLoop::Clock::now();
    timers = {loop_->after(milliseconds(30),
                           [&] {
                             order += 'c';
                             EXPECT_GE(EventLoop::Clock::now() - begin, milliseconds(30));
                             loop_->stop();
                           }),
              loop_->after(milliseconds(10), [&] { order += 'a'; }),
              loop_->after(milliseconds(20), [&] { order += 'b'; })};
  } while (EventLoop::Clock::now() - begin >= milliseconds(10));
  run();
  EXPECT_EQ(order, "abc");
}

TEST_P(EventLoops, a_cancelled_timer_does_not_fire) {
  bool fired = false;
  EventLoop::TimerId late;
  loop_->after(milliseconds(1), [&] { loop_->cancel(late); });
  late = loop_->after(milliseconds(5), [&] { fired = true; });
  stop_soon(milliseconds(30));
  run();
  EXPECT_FALSE(fired);
}

TEST_P(EventLoops, a_timer_that_sets_itself_again_does_not_starve_descriptors) {
  std::function<void()> again = [&] { loop_->after(milliseconds(0), again); };
  again();
  watch(here_.get(), {.readable = true}, [&](Readiness) { loop_->stop(); });
  put(there_.get());
  run();
}

TEST_P(EventLoops, stop_works_from_another_thread_and_before_run) {
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(10));
    loop_->stop();
  });
  run();
  other.join();

  auto loop = EventLoop::create(GetParam());
  ASSERT_TRUE(loop);
  (*loop)->stop();
  EXPECT_TRUE((*loop)->run());
}

TEST_P(EventLoops, many_descriptors_at_once_are_all_heard) {
  // More than fit into one submission queue.
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t count = limit.rlim_cur >= 2048 ? 600 : 100;
  std::vector<std::pair<UniqueFd, UniqueFd>> pairs;
  std::size_t heard = 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto pair = shim::make_socket_pair();
    ASSERT_TRUE(pair);
    pairs.push_back(std::move(*pair));
    const int fd = pairs.back().first.get();
    watch(fd, {.readable = true}, [&, fd](Readiness) {
      take(fd);
      if (++heard == 2 * count) loop_->stop();
    });
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& pair : pairs) put(pair.second.get());
  }
  run();
  EXPECT_EQ(heard, 2 * count);
}

TEST_P(EventLoops, an_idle_loop_uses_no_processor_time) {
  watch(here_.get(), {.readable = true}, [](Readiness) { ADD_FAILURE(); });
  rusage before{};
  rusage after{};
  stop_soon(milliseconds(300));
  ::getrusage(RUSAGE_THREAD, &before);
  run();
  ::getrusage(RUSAGE_THREAD, &after);
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 20) << "it woke up again and again";
}

TEST(EventLoopChoice, automatic_always_finds_a_back_end) {
  auto loop = EventLoop::create(Backend::automatic);
  ASSERT_TRUE(loop) << loop.error().message();
}

/// Makes io_uring_setup(2) fail with EPERM in this process from now on, as in some containers.
bool refuse_io_uring() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(EventLoopChoice, where_io_uring_is_refused_automatic_is_epoll_and_the_demand_says_why) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!refuse_io_uring()) ::_exit(77);
    auto chosen = EventLoop::create(Backend::automatic);
    auto demanded = EventLoop::create(Backend::io_uring);
    const bool good = chosen && (*chosen)->name() == "epoll" && demanded.code() == Errc::not_supported &&
                      demanded.error().text.find("Operation not permitted") != std::string::npos;
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "seccomp filters cannot be installed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(EventLoopChoice, epoll_names_the_limit_of_the_kernel_on_watched_descriptors) {
  auto loop = EventLoop::create(Backend::epoll);
  ASSERT_TRUE(loop) << loop.error().message();
  const auto pair = shim::make_socket_pair();
  ASSERT_TRUE(pair);
  bool refused = false;
  Result<EventLoop::WatchId> watched = Errc::timed_out;
  std::thread([&] {
    refused = testing_lrpc::refuse_calls(SYS_epoll_ctl, ENOSPC);
    watched = (*loop)->watch(pair->first.get(), {.readable = true}, [](Readiness) {});
  }).join();
  if (!refused) GTEST_SKIP() << "seccomp filters cannot be installed here";
  EXPECT_EQ(watched.code(), Errc::system_error);
  EXPECT_TRUE(watched.error().text.ends_with("fs.epoll.max_user_watches allows")) << watched.error().text;
}

LRPC_ON_BOTH_BACKENDS(EventLoops);

}  // namespace
}  // namespace lrpc::nameserver
