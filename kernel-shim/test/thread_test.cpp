#include "lrpc/detail/shim/system/thread.h"

#include <gtest/gtest.h>
#include <link.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <latch>
#include <string>
#include <thread>

#include "length.h"
#include "lrpc/detail/shim/system/fork.h"
#include "lrpc/detail/shim/system/of_this_thread.h"

namespace lrpc::shim {
namespace {

/// What a thread observes about itself.
struct Seen {
  sigset_t blocked{};
  std::size_t stack_size = 0;
  std::size_t guard_size = 0;
  char name[16] = {};
};

void* look(void* argument) {
  auto& seen = *static_cast<Seen*>(argument);
  pthread_sigmask(SIG_SETMASK, nullptr, &seen.blocked);
  pthread_getname_np(pthread_self(), seen.name, sizeof seen.name);
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstacksize(&attributes, &seen.stack_size);
  pthread_attr_getguardsize(&attributes, &seen.guard_size);
  pthread_attr_destroy(&attributes);
  return nullptr;
}

bool blocked_here(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

const ProcessNumber of_static_initialisation = this_process();  // initialised before the library

TEST(ThisProcess, has_the_number_that_a_static_object_of_the_programs_has_seen) {
  EXPECT_EQ(this_process(), of_static_initialisation);
}

TEST(ThisProcess, has_a_number_of_its_own_in_a_child_of_fork_and_of_a_bare_clone_and_in_their_children) {
  const ProcessNumber here = this_process();
  ASSERT_NE(here, 0U);
  for (const bool bare : {false, true}) {
    const pid_t child = bare ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : fork();
    ASSERT_GE(child, 0);
    int status = -1;
    if (child == 0) {
      const ProcessNumber there = this_process();
      const pid_t grandchild = fork();
      if (grandchild == 0) _exit(this_process() == here || this_process() == there ? 1 : 0);
      waitpid(grandchild, &status, 0);
      _exit(status == 0 && there != here && this_process() == there ? 0 : 1);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << (bare ? "clone" : "fork");
  }
  EXPECT_EQ(this_process(), here);
}

/// Of the dynamic linker, whose lock the child finds locked for ever. The parent has started no thread by Thread yet.
TEST(ThreadOfAForkChild, can_be_had_while_a_thread_of_the_parent_looks_at_the_loaded_objects) {
  if (testing_lrpc::kSanitized) GTEST_SKIP() << "forks beside threads, and a sanitizer's allocator knows no forks";
  struct {
    std::latch looks{1};
    std::latch may_end{1};
  } both;
  std::thread looker([&both] {
    const auto look_long = [](dl_phdr_info*, std::size_t, void* of) {
      static_cast<decltype(both)*>(of)->looks.count_down();
      static_cast<decltype(both)*>(of)->may_end.wait();
      return 1;
    };
    (void)dl_iterate_phdr(look_long, &both);
  });
  both.looks.wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // against an endless wait
    Seen seen;
    Thread thread;
    const bool started = thread.start({.name = "test", .stack_size = 65'536}, &look, &seen).has_value();
    thread.join();
    _exit(started ? 0 : 1);
  }
  both.may_end.count_down();
  looker.join();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Thread, has_the_stack_that_was_asked_for_and_blocks_what_is_sent) {
  Seen seen;
  Thread thread;
  ASSERT_TRUE(thread.start({.name = "test", .stack_size = 300'001, .guard_size = 65'536}, &look, &seen));
  EXPECT_TRUE(thread.running());
  thread.join();
  EXPECT_FALSE(thread.running());
  thread.join();  // returns at once
  EXPECT_GE(seen.stack_size, 300'001U);
  EXPECT_GE(seen.guard_size, 65'536U);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) {
    EXPECT_EQ(sigismember(&seen.blocked, signal), 1) << signal;
    EXPECT_FALSE(blocked_here(signal)) << signal;
  }
}

/// A program's thread-local variables lie on the stacks of its threads. (Touched, or it would not be there.)
thread_local volatile char large_of_this_thread[512 * 1024];

TEST(Thread, has_its_stack_beside_thread_local_variables_of_any_size) {
  const auto touch = [](void*) -> void* {
    large_of_this_thread[sizeof large_of_this_thread - 1] = 1;
    volatile char local[200 * 1024];
    local[0] = 1;
    large_of_this_thread[0] = local[0];
    return nullptr;
  };
  Thread thread;
  const Status started = thread.start({.name = "test", .stack_size = 256 * 1024}, touch, nullptr);
  EXPECT_TRUE(started) << started.error().message();
  thread.join();
}

TEST(Thread, leaves_its_own_faults_to_the_programs_handlers) {
  Seen seen;
  Thread thread;
  ASSERT_TRUE(thread.start({.name = "test"}, &look, &seen));
  thread.join();
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    EXPECT_EQ(sigismember(&seen.blocked, signal), 0) << signal;
}

/// Long enough that join() must wait.
void* nap(void*) {
  const timespec time{0, 50'000'000};
  nanosleep(&time, nullptr);
  return nullptr;
}

/// Joins a thread while a cancellation of the joining thread is pending.
void* join_though_cancelled(void* argument) {
  Thread thread;
  if (!thread.start({.name = "test"}, &nap, nullptr)) return nullptr;
  pthread_cancel(pthread_self());
  thread.join();
  *static_cast<bool*>(argument) = true;
  pthread_testcancel();
  return nullptr;
}

TEST(Thread, is_joined_to_its_end_by_one_that_is_cancelled_meanwhile) {
  bool joined = false;
  pthread_t other{};
  ASSERT_EQ(pthread_create(&other, nullptr, &join_though_cancelled, &joined), 0);
  void* ended = nullptr;
  ASSERT_EQ(pthread_join(other, &ended), 0);
  EXPECT_TRUE(joined);
  EXPECT_EQ(ended, PTHREAD_CANCELED) << "at the next cancellation point of its own";
}

TEST(Thread, has_the_name_that_was_asked_for_as_far_as_it_fits) {
  Seen seen;
  Thread thread;
  ASSERT_TRUE(thread.start({.name = "of sixteen bytes"}, &look, &seen));
  thread.join();
  EXPECT_STREQ(seen.name, "of sixteen byte");
}

TEST(OfThisThread, is_made_once_for_each_thread_and_ends_with_it) {
  struct Counted {
    ~Counted() { --alive(); }
    static std::atomic<int>& alive() {
      static std::atomic<int> count = 0;
      return count;
    }
    int number = ++alive();
  };
  using Own = OfThisThread<Counted>;
  EXPECT_EQ(Own::if_made(), nullptr);
  EXPECT_EQ(Own::get().number, 1);
  EXPECT_EQ(Own::if_made(), &Own::get());
  std::thread([] {
    EXPECT_EQ(Own::if_made(), nullptr);
    EXPECT_EQ(Own::get().number, 2);
    EXPECT_EQ(&Own::get(), Own::if_made());
  }).join();
  EXPECT_EQ(Counted::alive(), 1);
}

TEST(Thread, that_cannot_be_had_is_an_error_and_leaves_the_signals_as_they_were) {
  Thread thread;
  Seen seen;
  for (const std::size_t size : {std::size_t{1} << 60, ~std::size_t{0}}) {
    const Status started = thread.start({.stack_size = size}, &look, &seen);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Errc::system_error);
    EXPECT_NE(started.error().text.find("pthread_create"), std::string::npos) << started.error().text;
    EXPECT_FALSE(thread.running());
    EXPECT_FALSE(blocked_here(SIGINT));
  }
  ASSERT_TRUE(thread.start({}, &look, &seen)) << "and can be had later";
  thread.join();
}

TEST(SchedulingPolicy, is_realtime_whether_or_not_children_inherit_it) {
  for (const int flag : {0, SCHED_RESET_ON_FORK}) {
    for (const int policy : {SCHED_FIFO, SCHED_RR, SCHED_DEADLINE}) EXPECT_TRUE(is_realtime(policy | flag)) << policy;
    for (const int policy : {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE}) EXPECT_FALSE(is_realtime(policy | flag)) << policy;
  }
  EXPECT_FALSE(is_realtime(-1)) << "if the kernel does not tell";
}

TEST(Thread, that_this_process_may_not_schedule_so_is_not_permitted) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_RTPRIO, &none) != 0) ::_exit(0xfe);
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(0xfd);
    ::_exit(static_cast<int>(can_schedule({.policy = Scheduling::Policy::fifo, .priority = 1}).code()));
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Errc::not_permitted));
}

}  // namespace
}  // namespace lrpc::shim
