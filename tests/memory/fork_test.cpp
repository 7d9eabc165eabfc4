// In a child of fork(2) the library allocates nothing, and frees nothing, before fork has returned: an allocator that
// does not know of forks (a sanitizer's, a user's own) may have been locked by a thread that is not there.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

#include "burst_service.h"
#include "world.h"

// The allocator behind the names, as glibc exports it for this purpose.
extern "C" {
void* __libc_malloc(std::size_t size);  // NOLINT: glibc's name
void __libc_free(void* memory);         // NOLINT
}

namespace {

bool forking = false;  ///< In the child, until fork has returned: its one thread writes it.
int uses = 0;

/// Before any handler of the library's: in the child the first one registered is the first to run.
const int registered = pthread_atfork(nullptr, nullptr, [] { forking = true; });

}  // namespace

// What operator new and delete call.
extern "C" {
void* malloc(std::size_t size) {
  if (forking) ++uses;
  return __libc_malloc(size);
}
void free(void* memory) {
  if (forking && memory != nullptr) ++uses;
  __libc_free(memory);
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
