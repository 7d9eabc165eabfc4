// Kernels and filters that refuse membarrier(2): from the start, or from some moment on.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "gated_service.h"
#include "lrpc/detail/client/binding/astack_list.h"
#include "lrpc/server.h"
#include "processor_time.h"
#include "refused_membarrier.h"

namespace testing_lrpc {
namespace {

using lrpc::CallDeadline;
using lrpc::CallScope;
using lrpc::Errc;
using namespace std::chrono_literals;

TEST(WithoutMembarrier, calls_of_every_gate_are_right) {
  EXPECT_EQ(run_without_membarrier("--gtest_filter=conformance/*:gates/Growth.*:Supply.a_binding*"), 0);
}

/// A thread that calls when it is told to. It lives on between its calls, so that an A-stack stays leased to it.
class Caller {
 public:
  explicit Caller(Conformance::Client& client) : client_(client), thread_([this] { run(); }) {}
  ~Caller() {
    tell(kEnd);
    thread_.join();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  void call() { tell(kCall); }
  void call_and_wait() {
    call();
    wanted_.wait(kCall);
  }

 private:
  static constexpr int kNothing = 0, kCall = 1, kEnd = 2;
  void tell(int what) {
    wanted_ = what;
    wanted_.notify_all();
  }
  void run() {
    for (;;) {
      wanted_.wait(kNothing);
      if (wanted_ == kEnd) return;
      EXPECT_TRUE(client_.SleepFor(0));
      tell(kNothing);
    }
  }
  Conformance::Client& client_;
  std::atomic<int> wanted_{kNothing};
  std::thread thread_;
};

TEST(WithoutMembarrierFromNowOn, DISABLED_a_waiting_caller_sleeps_and_leases_go_back) {
  constexpr int kAStacks = 5;
  Gated service;
  lrpc::Server server;
  auto client = bind_privately(server, service);
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < kAStacks; ++i) callers.push_back(std::make_unique<Caller>(*client));
  for (auto& caller : callers) caller->call();
  ASSERT_TRUE(service.wait_inside(kAStacks));  // each holds an A-stack
  service.let_all_go();
  ASSERT_TRUE(service.wait_left(kAStacks));
  for (auto& caller : callers) caller->call_and_wait();

  ASSERT_TRUE(refuse_membarrier());
  const auto began = processor_time();
  {
    const CallScope scope(CallDeadline(400ms));
    EXPECT_EQ(client->SleepFor(0).code(), Errc::call_aborted) << "idle owners have all A-stacks";
  }
  EXPECT_LT(processor_time() - began, 200ms) << "it is waiting, not sleeping";
  for (auto& caller : callers) caller->call_and_wait();  // each releases its lease
  EXPECT_TRUE(client->SleepFor(0));
}

TEST(WithoutMembarrier, from_some_moment_on_a_waiting_caller_sleeps_and_leases_go_back) {
  // In a separate process, because its threads are refused for good.
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "membarrier", "--gtest_filter=WithoutMembarrierFromNowOn.*",
          "--gtest_also_run_disabled_tests", nullptr);
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(AStackList, lets_nobody_wait_who_was_woken_since_the_count_was_read) {
  lrpc::client::AStackList list;
  list.fill({}, 0, 0);
  const std::uint32_t seen = list.wakes();
  list.close();  // the binding is revoked here, after wakes() was read
  list.wake_waiters();
  list.wait(seen, 24h, {});
}

}  // namespace
}  // namespace testing_lrpc
