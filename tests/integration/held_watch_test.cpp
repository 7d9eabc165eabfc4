// A thread begins to watch a call, and is delayed after its last step: a function that the queue then runs may destroy
// the queue. A thread waits for longer than one poll(2) can.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <thread>

#include "eventually.h"
#include "held_calls.h"
#include "limits_service.h"

namespace testing_lrpc {
namespace {

using namespace std::chrono_literals;

/// Delays the thread that made this object after it has woken another one: until the watched call was reported, or 200
/// ms.
class HeldWaker : public Watch {
 public:
  void woke_here() override {
    if (std::this_thread::get_id() != waker_) return;
    for (int look = 0; look < 200 && !reported_; ++look) std::this_thread::sleep_for(1ms);
    past_ = true;
  }
  void report() {
    reported_early_ = !past_;
    reported_ = true;
  }
  [[nodiscard]] bool past() const noexcept { return past_; }
  [[nodiscard]] bool reported() const noexcept { return reported_; }
  [[nodiscard]] bool reported_early() const noexcept { return reported_early_; }

 private:
  const std::thread::id waker_ = std::this_thread::get_id();
  std::atomic<bool> past_ = false;
  std::atomic<bool> reported_ = false;
  std::atomic<bool> reported_early_ = false;
};

TEST(HeldWatch, has_left_the_queue_before_the_call_is_reported) {
  HeldWaker waker;
  LocalLimits limits;
  auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(queue);
  auto call = limits.client->start().Null();
  ASSERT_TRUE(call.wait_for(kPatience));
  waker.begin();
  std::thread runner([&] { EXPECT_TRUE(eventually([&] { return (*queue)->wait(10ms) != 0; })); });
  EXPECT_TRUE((*queue)->watch(call, [&] { waker.report(); }));
  runner.join();
  EXPECT_TRUE(waker.past()) << "nobody was woken";
  EXPECT_TRUE(waker.reported());
  EXPECT_FALSE(waker.reported_early()) << "a queue that ended now would still be in use";
  EXPECT_TRUE(call.finish());
}

/// The longest time for which poll(2) can wait is over at once, the first time. Only then the call is let go.
class TwentyFourDays : public Watch {
 public:
  void begin(std::atomic<bool>& released) {
    released_ = &released;
    Watch::begin();
  }
  bool skips_poll(int timeout_ms) override { return timeout_ms == INT_MAX && !released_->exchange(true); }

 private:
  std::atomic<bool>* released_ = nullptr;
};

TEST(LongWait, of_a_completion_queue_goes_on_when_the_time_of_one_poll_is_over) {
  TwentyFourDays watch;
  LocalLimits limits;
  auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(queue);
  auto call = limits.client->start().Stay();
  ASSERT_TRUE((*queue)->watch(call));
  watch.begin(limits.service.released);
  EXPECT_EQ((*queue)->wait(std::chrono::hours(24 * 30)), 1U);
  EXPECT_TRUE(limits.service.released) << "it has waited for as long as one poll(2) can";
  EXPECT_TRUE(call.finish());
}

}  // namespace
}  // namespace testing_lrpc
