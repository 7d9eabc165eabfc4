// Many started calls at once: a descriptor for poll(2), functions, coroutines.
#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coroutine>
#include <thread>
#include <vector>

#include "eventually.h"
#include "length.h"
#include "tasks_service.h"

namespace testing_lrpc {
namespace {

using lrpc::CompletionQueue;
using lrpc::Errc;
using namespace std::chrono_literals;
using Nap = decltype(std::declval<Tasks::Client&>().start().NapFor(0));

std::unique_ptr<CompletionQueue> make_queue() {
  auto queue = CompletionQueue::create();
  if (!queue) throw std::runtime_error(queue.error().message());
  return *std::move(queue);
}

bool readable(int fd, int milliseconds) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, milliseconds) == 1;
}

/// A coroutine that runs until its first co_await, and then in the queue's run().
struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

TEST(Completion, makes_a_descriptor_readable_when_a_watched_call_has_returned) {
  LocalTasks tasks;
  const auto queue = make_queue();
  auto nap = tasks.client->start().NapFor(kUntilLetGo);
  ASSERT_TRUE(queue->watch(nap));
  EXPECT_FALSE(readable(queue->fd(), 20));
  tasks.service.let_all_go();
  EXPECT_TRUE(readable(queue->fd(), kPatienceMs));
  EXPECT_TRUE(nap.ready());
  EXPECT_EQ(queue->run(), 1U);
  EXPECT_FALSE(readable(queue->fd(), 0));
  EXPECT_EQ(nap.finish().value(), kUntilLetGo);
}

/// While it exists, freed memory is overwritten.
struct FreedMemoryChanges {
  FreedMemoryChanges() { (void)mallopt(M_PERTURB, 0x5a); }
  ~FreedMemoryChanges() { (void)mallopt(M_PERTURB, 0); }
};

TEST(Completion, may_end_before_the_calls_that_it_watches) {
  const FreedMemoryChanges changes;
  LocalTasks tasks;
  auto queue = make_queue();
  auto finished = tasks.client->start().NapFor(1);
  auto told = tasks.client->start().NapFor(kUntilLetGo);
  auto moved = tasks.client->start().NapFor(kUntilLetGo);
  auto dropped = std::make_unique<Nap>(tasks.client->start().NapFor(kUntilLetGo));
  auto owned = std::make_shared<Nap>(tasks.client->start().NapFor(kUntilLetGo));
  for (Nap* nap : {&finished, &told, &moved, dropped.get()}) ASSERT_TRUE(queue->watch(*nap, [] { FAIL(); }));
  ASSERT_TRUE(queue->watch(*owned, [owned] { FAIL(); }));
  owned.reset();
  EXPECT_TRUE(finished.wait_for(kPatience));
  queue.reset();
  EXPECT_TRUE(finished.finish());
  dropped.reset();
  Nap target = std::move(moved);
  const auto other = make_queue();
  bool heard = false;
  ASSERT_TRUE(other->watch(told, [&] { heard = true; }));
  tasks.service.let_all_go();
  EXPECT_TRUE(eventually([&] { return other->wait(10ms) != 0; }));
  EXPECT_TRUE(heard);
  EXPECT_TRUE(told.finish());
  EXPECT_TRUE(target.finish());
}

/// If it were not dropped, destroying the call would wait for itself.
TEST(Completion, lets_a_call_that_is_watched_again_drop_what_it_was_to_run) {
  LocalTasks tasks;
  const auto queue = make_queue();
  auto call = tasks.client->start().NapFor(kUntilLetGo);
  auto owned = std::make_shared<Nap>(tasks.client->start().NapFor(kUntilLetGo));
  ASSERT_TRUE(queue->watch(*owned, [] { FAIL(); }));
  ASSERT_TRUE(queue->watch(call, [owned] { FAIL(); }));
  owned.reset();
  bool heard = false;
  ASSERT_TRUE(queue->watch(call, [&] { heard = true; }));
  tasks.service.let_all_go();
  EXPECT_TRUE(eventually([&] { return queue->wait(10ms) != 0; }));
  EXPECT_TRUE(heard);
  EXPECT_TRUE(call.finish());
}

TEST(Completion, of_two_queues_that_watched_a_call_only_the_last_hears_of_it) {
  LocalTasks tasks;
  const auto first = make_queue();
  const auto last = make_queue();
  int told = 0;
  {
    auto nap = tasks.client->start().NapFor(kUntilLetGo);
    ASSERT_TRUE(first->watch(nap, [&] { told += 100; }));
    ASSERT_TRUE(last->watch(nap, [&] { told += 1; }));
    tasks.service.let_all_go();
    EXPECT_TRUE(readable(last->fd(), kPatienceMs));
    EXPECT_EQ(last->run(), 1U);
    EXPECT_EQ(nap.finish().value(), kUntilLetGo);
  }
  EXPECT_FALSE(readable(first->fd(), 20));
  EXPECT_EQ(first->run(), 0U);
  EXPECT_EQ(told, 1);
}

TEST(Completion, whose_callback_throws_still_has_the_others) {
  LocalTasks tasks;
  const auto queue = make_queue();
  auto one = tasks.client->start().NapFor(1);
  auto two = tasks.client->start().NapFor(1);
  int told = 0;
  const auto tell = [&] {
    if (++told == 1) throw std::runtime_error("the program's own affair");
  };
  ASSERT_TRUE(queue->watch(one, tell));
  ASSERT_TRUE(queue->watch(two, tell));
  while (!one.ready() || !two.ready()) std::this_thread::sleep_for(1ms);
  while (told < 2) {
    ASSERT_TRUE(readable(queue->fd(), kPatienceMs));
    try {
      (void)queue->run();
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_EQ(one.finish().value() + two.finish().value(), 2U);
}

TEST(Completion, runs_what_was_asked_for_in_the_order_of_the_returns) {
  LocalTasks tasks;
  const auto queue = make_queue();
  std::vector<Nap> naps;
  std::vector<std::uint32_t> seen;
  naps.reserve(3);
  for (const std::uint32_t number : {3U, 1U, 2U}) {
    naps.push_back(tasks.client->start().NapFor(kUntilLetGo + number));
    ASSERT_TRUE(queue->watch(naps.back(), [&seen, &nap = naps.back()] { seen.push_back(nap.finish().value()); }));
  }
  for (const std::uint32_t number : {1U, 2U, 3U}) {
    tasks.service.release(kUntilLetGo + number);
    while (seen.size() < number) (void)queue->wait(kPatience);
  }
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{kUntilLetGo + 1, kUntilLetGo + 2, kUntilLetGo + 3}));
}

TEST(Completion, forgets_calls_that_are_finished_or_dropped_while_they_are_watched) {
  LocalTasks tasks;
  const auto queue = make_queue();
  int ran = 0;
  for (int i = 0; i < 50; ++i) {
    auto finished = tasks.client->start().Add(i, 1);
    auto dropped = tasks.client->start().Add(i, 2);
    ASSERT_TRUE(queue->watch(finished, [&] { ++ran; }));
    ASSERT_TRUE(queue->watch(dropped, [&] { ++ran; }));
    auto moved = std::move(finished);
    EXPECT_EQ(moved.finish().value(), i + 1);
  }
  (void)queue->wait(20ms);
  EXPECT_EQ(ran, 0);
}

TEST(Completion, waits_for_the_other_calls_if_the_one_that_had_returned_is_finished_before) {
  LocalTasks tasks;
  const auto queue = make_queue();
  auto finished = tasks.client->start().NapFor(kUntilLetGo + 1);
  auto other = tasks.client->start().NapFor(kUntilLetGo + 2);
  ASSERT_TRUE(queue->watch(finished));
  ASSERT_TRUE(queue->watch(other));
  tasks.service.release(kUntilLetGo + 1);
  ASSERT_TRUE(readable(queue->fd(), kPatienceMs));
  EXPECT_TRUE(finished.finish());
  std::thread later([&] {
    std::this_thread::sleep_for(20ms);
    tasks.service.release(kUntilLetGo + 2);
  });
  EXPECT_EQ(queue->wait(kPatience), 1U);
  later.join();
  EXPECT_TRUE(other.finish());
}

TEST(Completion, hears_of_calls_that_have_returned_before_they_are_watched) {
  LocalTasks tasks;
  const auto queue = make_queue();
  auto sum = tasks.client->start().Add(1, 2);
  ASSERT_TRUE(sum.wait_for(kPatience));
  ASSERT_TRUE(queue->watch(sum));
  EXPECT_TRUE(readable(queue->fd(), kPatienceMs));
}

TEST(Completion, hears_of_a_servers_death) {
  TasksProcess server = start_tasks_process(LRPC_TASKS_SERVER);
  auto client = Tasks::Client::import_over(std::move(server.socket), {.watcher = false});
  ASSERT_TRUE(client) << client.error().message();
  const auto queue = make_queue();
  std::vector<Nap> naps;
  naps.reserve(8);
  int failed = 0;
  for (int i = 0; i < 8; ++i) {
    naps.push_back(client->start().NapFor(kForeverMs));
    ASSERT_TRUE(queue->watch(naps.back(),
                             [&failed, &nap = naps.back()] { failed += nap.finish().code() == Errc::call_failed; }));
  }
  std::this_thread::sleep_for(10ms);
  server.process.kill_and_wait();
  while (failed < 8) (void)queue->wait(kPatience);
  EXPECT_EQ(failed, 8);
}

Task add_up(Tasks::Client& client, CompletionQueue& queue, int& sum, int& done) {
  for (int i = 0; i < 20; ++i) {
    const auto next = co_await client.start().Add(sum, i).on(queue);
    sum = next ? *next : -1'000'000;
  }
  ++done;
}

TEST(Completion, resumes_coroutines_on_the_thread_that_runs_it) {
  LocalTasks tasks;
  const auto queue = make_queue();
  int done = 0;
  std::array<int, 5> sums{};
  for (int& sum : sums) add_up(*tasks.client, *queue, sum, done);
  while (done < 5) (void)queue->wait(kPatience);  // NOLINT(bugprone-infinite-loop): the coroutines count
  EXPECT_EQ(done, 5);
  for (const int sum : sums) EXPECT_EQ(sum, 190);
}

TEST(Completion, gives_a_coroutine_the_error_of_a_call_that_could_not_be_started) {
  LocalTasks tasks;
  const auto queue = make_queue();
  Errc code = Errc::ok;
  [](Tasks::Client& client, CompletionQueue& on, Errc& out) -> Task {
    std::array<std::byte, 1001> data{};
    lrpc::Buffer buffer{std::span<std::byte>(data), data.size()};
    out = (co_await client.start().Reverse(buffer).on(on)).code();
  }(*tasks.client, *queue, code);
  EXPECT_EQ(code, Errc::argument_too_long);
}

TEST(Completion, refuses_a_call_that_was_not_started) {
  LocalTasks tasks;
  const auto queue = make_queue();
  std::vector<std::byte> long_data(1001);
  lrpc::Buffer buffer(std::span<std::byte>(long_data), long_data.size());
  auto refused = tasks.client->start().Reverse(buffer);
  EXPECT_EQ(queue->watch(refused).code(), Errc::invalid_argument);
  auto moved_from = tasks.client->start().Null();
  auto moved_to = std::move(moved_from);
  EXPECT_EQ(queue->watch(moved_from).code(), Errc::invalid_argument);
  EXPECT_TRUE(queue->watch(moved_to));
}

TEST(Completion, of_the_parent_is_not_there_in_a_fork_child) {
  if (kSanitized) GTEST_SKIP() << "forks beside threads, and a sanitizer's allocator does not know of forks";
  LocalTasks tasks;
  const auto queue = make_queue();
  auto nap = tasks.client->start().NapFor(kUntilLetGo);
  const pid_t child = fork();
  if (child == 0) _exit(queue->watch(nap).code() == Errc::not_supported ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  tasks.service.let_all_go();
}

TEST(Completion, reports_at_once_what_a_fork_childs_parent_started) {
  if (kSanitized) GTEST_SKIP() << "forks beside threads, and a sanitizer's allocator does not know of forks";
  LocalTasks tasks;
  auto nap = tasks.client->start().NapFor(kUntilLetGo);
  const pid_t child = fork();
  if (child == 0) {
    const auto own = make_queue();
    Errc code{};
    const bool watched = own->watch(nap, [&] { code = nap.finish().code(); }).has_value();
    _exit(watched && own->wait(kPatience) == 1 && code == Errc::call_failed ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  tasks.service.let_all_go();
  EXPECT_TRUE(nap.finish());
}

}  // namespace
}  // namespace testing_lrpc
