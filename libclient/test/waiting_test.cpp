// What ends a caller's wait before the return: the earliest deadline, and any cancellation, of its own scopes and of
// the scopes in which the call was started.
#include "binding/waiting.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <thread>

#include "lrpc/detail/client/call/call_scope.h"
#include "refused_calls.h"

namespace lrpc::client {
namespace {

using namespace std::chrono_literals;
using Clock = Waiting::Clock;

/// The cancellations of this thread's innermost scope.
std::shared_ptr<const shim::Cancellations> cancellations_now() { return shim::calling_thread.limits->cancellations(); }

/// How many words this Waiting adds to the caller's own word in a sleep.
std::size_t cancellation_words(const Waiting& waiting) {
  std::array<shim::FutexWait, 16> words{};
  return waiting.append(words, 0);
}

TEST(Waiting, has_no_end_without_limits) {
  const Waiting waiting;
  EXPECT_EQ(waiting.until(), Clock::time_point::max());
  EXPECT_EQ(waiting.left(3h), 3h);
  EXPECT_FALSE(waiting.cancellable());
  EXPECT_FALSE(waiting.cancelled());
  EXPECT_EQ(cancellation_words(waiting), 0U);
}

TEST(Waiting, ends_by_the_earliest_of_scope_timeout_and_bound) {
  const auto before = Clock::now();
  const CallScope scope(2h);
  EXPECT_GE(Waiting().until(), before + 2h - 1min);
  const auto of_scope = Waiting().until();
  const auto of_binding = Waiting(1h).until();
  const auto of_both = Waiting(3h).until();
  const auto after = Clock::now();
  EXPECT_LE(of_scope, after + 2h);
  EXPECT_LE(of_binding, after + 1h) << "the binding's timeout is earlier";
  EXPECT_LE(of_both, after + 2h) << "the scope is earlier";
  EXPECT_EQ(Waiting().left(1min), 1min) << "a sleep is bounded";
  EXPECT_GT(Waiting().left(4h), 1h);
  EXPECT_LE(Waiting().left(4h), 2h);
}

TEST(Waiting, has_no_time_left_after_its_deadline) {
  const CallScope scope(0ms);
  EXPECT_EQ(Waiting().left(1h), 0ns);
  EXPECT_EQ(Waiting().why_over(), Errc::call_aborted);
}

TEST(Waiting, ends_as_cancelled_even_after_its_deadline) {
  const Cancellation cancellation;
  const CallScope scope(0ms, cancellation);
  const Waiting waiting;
  EXPECT_TRUE(waiting.cancellable());
  EXPECT_EQ(waiting.why_over(), Errc::call_aborted);
  cancellation.cancel();
  EXPECT_EQ(waiting.why_over(), Errc::call_cancelled);
}

TEST(Waiting, keeps_the_limits_under_which_the_call_was_started) {
  const Cancellation at_start;
  shim::LinkageRecord linkage;
  const auto until = Clock::now() + 1h;
  {
    const CallScope scope(at_start);
    linkage.cancellations = cancellations_now();
  }
  linkage.until = until;
  linkage.limited = true;
  EXPECT_FALSE(Waiting().cancellable()) << "the scope is over";

  const Waiting waiting(linkage);
  EXPECT_EQ(waiting.until(), until);
  EXPECT_TRUE(waiting.cancellable());
  {
    const CallScope earlier(1min);
    EXPECT_LT(Waiting(linkage).until(), until) << "the limits of the thread that finishes it hold, too";
  }
  at_start.cancel();
  EXPECT_TRUE(waiting.cancelled());

  linkage.limited = false;
  EXPECT_FALSE(Waiting(linkage).cancellable()) << "a later call with this A-stack has no such limits";
}

TEST(Waiting, a_cancellation_of_both_start_and_finish_is_there_once) {
  const Cancellation outer;
  const Cancellation inner;
  const Cancellation later;
  shim::LinkageRecord linkage;
  const CallScope common(outer);
  {
    const CallScope scope(inner);
    linkage.cancellations = cancellations_now();
  }
  linkage.until = Clock::time_point::max();
  linkage.limited = true;
  EXPECT_EQ(cancellation_words(Waiting()), 1U);
  EXPECT_EQ(cancellation_words(Waiting(linkage)), 2U) << "outer and inner";
  const CallScope scope(later);
  EXPECT_EQ(cancellation_words(Waiting(linkage)), 3U);
  std::array<shim::FutexWait, 2> room{};
  EXPECT_EQ(Waiting(linkage).append(room, 0), 2U) << "no more than there is room for";
}

/// Sleeps for up to an hour on a word that does not change.
shim::Wake sleep_in(const Waiting& waiting) {
  const std::uint32_t word = 7;
  return waiting.sleep(std::array<shim::FutexWait, 1>{{{&word, 7, false}}}, 1h);
}

void expect_changed_word_or_cancellation_to_end_a_sleep() {
  const std::uint32_t word = 7;
  EXPECT_EQ(Waiting().sleep(std::array<shim::FutexWait, 1>{{{&word, 6, false}}}, 1h), shim::Wake::changed);
  const Cancellation cancellation;
  const CallScope scope(cancellation);
  const Waiting waiting;
  EXPECT_EQ(waiting.sleep(std::array<shim::FutexWait, 1>{{{&word, 7, false}}}, 5ms), shim::Wake::timed_out);
  cancellation.cancel();
  EXPECT_EQ(sleep_in(waiting), shim::Wake::changed);
}

TEST(Waiting, a_changed_word_or_a_cancellation_ends_a_sleep) { expect_changed_word_or_cancellation_to_end_a_sleep(); }

/// On a thread of its own, whose filter ends with it.
TEST(Waiting, a_changed_word_or_a_cancellation_ends_a_sleep_where_futex_waitv_is_refused) {
  bool refused = false;
  std::thread([&] {
    refused = testing_lrpc::refuse_calls(SYS_futex_waitv, ENOSYS);
    if (refused) expect_changed_word_or_cancellation_to_end_a_sleep();
  }).join();
  if (!refused) GTEST_SKIP() << testing_lrpc::kNoSuchKernel;
}

TEST(Waiting, the_outermost_of_many_cancellations_ends_a_sleep) {
  const Cancellation outermost;
  const CallScope scope(outermost);
  std::list<CallScope> scopes;
  std::list<Cancellation> cancellations;
  for (std::size_t i = 0; i < Waiting::kMostCancellations; ++i) scopes.emplace_back(cancellations.emplace_back());
  const Waiting waiting;
  outermost.cancel();
  EXPECT_NE(sleep_in(waiting), shim::Wake::timed_out);
  EXPECT_TRUE(waiting.cancelled());
  while (!scopes.empty()) scopes.pop_back();  // from the innermost to the outermost
}

TEST(LookAfterServer, is_not_due_before_sleeps_were_cut_short_for_a_while) {
  LookAfterServer look;
  EXPECT_FALSE(look.due()) << "there was no sleep yet";
  look.slept(shim::Wake::timed_out);
  EXPECT_FALSE(look.due()) << "a caller that has slept its time looks anyway";
  look.slept(shim::Wake::interrupted);
  EXPECT_FALSE(look.due()) << "not as soon as that";
}

}  // namespace
}  // namespace lrpc::client
