// In a child of fork(2) the library neither allocates nor frees before fork has returned. An allocator that does not
// handle forks (a sanitizer's, a user's own) may have been locked by a thread that the child does not have. Nor does a
// child wait for something that another thread was making for the first time during the fork.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "../../libclient/src/binding/library.h"
#include "burst_service.h"
#include "ended.h"
#include "lrpc/detail/shim/system/processor.h"
#include "world.h"

// glibc's functions, under the names that it exports for this purpose.
extern "C" {
void* __libc_malloc(std::size_t size);                                                   // NOLINT: glibc's name
void __libc_free(void* memory);                                                          // NOLINT
int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* dso);  // NOLINT
}

namespace {

bool forking = false;  ///< True in the child until fork has returned. Written by its only thread.
int uses = 0;

int registered = -1;
/// Registers before the library does: in a child, handlers run in the order of registration.
[[gnu::constructor(101)]] void register_first() {
  registered = pthread_atfork(nullptr, nullptr, [] { forking = true; });
}

/// By the whole process, so far.
std::atomic<int> registrations{0};

/// hold() stops a thread in a first use until `forked`, or for a while. A first use is of the objects that all bindings
/// share, which are made under a lock, or a thread's first look at the clock.
std::atomic<bool> may_be_held{false};
thread_local bool clock_is_held = false;
std::atomic<bool> held{false};
std::atomic<bool> forked{false};

void hold() {
  held = true;
  for (int look = 0; look < 200 && !forked; ++look) usleep(1000);
}

}  // namespace

// The functions that operator new and delete call.
extern "C" {
void* malloc(std::size_t size) {
  if (forking) ++uses;
  if (size == sizeof(lrpc::client::Library) && may_be_held.exchange(false)) hold();
  return __libc_malloc(size);
}
void free(void* memory) {
  if (forking && memory != nullptr) ++uses;
  __libc_free(memory);
}
int pthread_atfork(void (*prepare)(), void (*parent)(), void (*child)()) noexcept {
  ++registrations;
  return __register_atfork(prepare, parent, child, nullptr);
}
int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (std::exchange(clock_is_held, false)) hold();
  return static_cast<int>(syscall(SYS_clock_gettime, clock, now));
}
}

namespace {

using namespace testing_lrpc;

int uses_in_child() {
  const pid_t child = fork();
  if (child == 0) _exit(uses);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// An import from a server that does not answer.
lrpc::Errc import_in_vain() {
  auto ends = lrpc::shim::make_socket_pair();
  if (!ends) return ends.code();
  return Burst::Client::import_over(std::move(ends->second), {.timeout = std::chrono::milliseconds(1)}).code();
}

/// Forks while another thread is held in `first_use`; the child then does the same first use.
void fork_during(bool (*first_use)(), bool hold_the_clock) {
  held = false;
  forked = false;
  may_be_held = !hold_the_clock;
  std::thread first([&] {
    clock_is_held = hold_the_clock;
    EXPECT_TRUE(first_use());
  });
  EXPECT_TRUE(eventually([] { return held.load(); })) << "nothing was made; was there a use before?";
  const pid_t child = fork();
  if (child == 0) _exit(first_use() ? 0 : 1);
  forked = true;
  const bool ended = eventually([&] { return has_ended(child); });
  EXPECT_TRUE(ended) << "it waits for what is nobody's";
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  first.join();
}

/// Must be the first test here: it tests the first use of the clock in the process.
TEST(ChildOfFork, measures_time_although_it_was_made_during_the_first_measurement_of_another_thread) {
  fork_during([] { return lrpc::shim::ticks_per_microsecond() != 0; }, true);
}

/// Must be the second test: its imports are the first in the process.
TEST(ChildOfFork, imports_although_it_was_made_during_the_first_import_of_another_thread) {
  fork_during([] { return import_in_vain() == lrpc::Errc::timed_out; }, false);
}

/// If a first use registered handlers, it would wait for a fork in progress, and the fork's child for the first use.
TEST(ChildOfFork, has_handlers_that_were_registered_before_there_were_threads) {
  const int before = registrations;
  EXPECT_NE(before, 0);
  World world;
  BurstService service;
  lrpc::Server server({.nameserver = world.nameserver()});
  ASSERT_TRUE(Burst::export_to(server, "early", service));
  auto client = Burst::Client::import("early", {.nameserver = world.nameserver()});
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Meet(1).value(), 1U);
  EXPECT_EQ(registrations, before);
}

TEST(ChildOfFork, touches_no_allocator_before_fork_returns) {
  ASSERT_EQ(registered, 0);
  World world;
  BurstService service;
  lrpc::Server server({.nameserver = world.nameserver()});
  ASSERT_TRUE(Burst::export_to(server, "burst", service));
  auto client = Burst::Client::import(
      "burst", {.nameserver = world.nameserver(), .supply = lrpc::AStackSupply::grow, .on_revoked = [] {}});
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(client->binding().revocation_fd());
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) threads.emplace_back([&] { EXPECT_EQ(client->Meet(20).value(), 20U); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(uses_in_child(), 0);
  EXPECT_EQ(uses_in_child(), 0) << "a second child";
}

}  // namespace
