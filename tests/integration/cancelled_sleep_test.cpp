// Cancellation wakes callers that sleep. Checked by the result of the sleep, because even a caller that is not woken
// looks every 100 ms.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "eventually.h"
#include "gates.h"
#include "held_calls.h"
#include "limits_service.h"
#include "lrpc/detail/shim/system/futex.h"

namespace testing_lrpc {
namespace {

using lrpc::CallScope;
using lrpc::Cancellation;

/// Records the sleeps of the thread that makes it.
class OwnSleeps : public Watch {
 public:
  void waits(void* /*word*/, std::uint32_t /*expected*/, std::uint32_t /*bits*/,
             std::chrono::nanoseconds /*limit*/) override {
    if (std::this_thread::get_id() == sleeper_) asleep_ = true;
  }
  void waited(void* /*word*/, std::uint32_t /*bits*/, long result) override {
    if (std::this_thread::get_id() != sleeper_) return;
    asleep_ = false;
    woken_ = result == 0;
  }
  [[nodiscard]] bool asleep() const noexcept { return asleep_; }
  /// Whether the last sleep was ended by a wake-up.
  [[nodiscard]] bool woken() const noexcept { return woken_; }

 private:
  const std::thread::id sleeper_ = std::this_thread::get_id();
  std::atomic<bool> asleep_ = false;
  std::atomic<bool> woken_ = false;
};

class CancelledSleep : public testing::TestWithParam<lrpc::Gate> {
 protected:
  void SetUp() override {
    if (!lrpc::shim::can_wait_any()) GTEST_SKIP() << "futex_waitv(2) is missing or refused";
    watch_.begin();
  }
  /// Cancels a call while its caller sleeps. True: the caller was woken. False: the cancellation came between two
  /// sleeps, so no wake-up was needed.
  bool is_woken(bool started) {
    const Cancellation cancellation;
    std::thread other([&] {
      EXPECT_TRUE(eventually([&] { return limits_.service.holding != 0 && watch_.asleep(); }));
      cancellation.cancel();
    });
    {
      const CallScope scope(cancellation);
      const auto held = started ? limits_.client->start().Hold(kForeverMs).finish() : limits_.client->Hold(kForeverMs);
      EXPECT_EQ(held.code(), lrpc::Errc::call_cancelled);
    }
    const bool woken = watch_.woken();
    other.join();
    EXPECT_TRUE(eventually([&] { return limits_.service.holding == 0; }));
    return woken;
  }
  /// Not all of this many cancellations can come between two sleeps of 100 ms, unless nobody is woken.
  static constexpr int kRounds = 50;

  OwnSleeps watch_;
  LocalLimits limits_{{.gate = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(gates, CancelledSleep, testing::ValuesIn(kRepeatedGates), gate_name);

TEST_P(CancelledSleep, ends_by_a_wake_up) {
  for (const bool started : {false, true}) {
    bool woken = false;
    for (int round = 0; round < kRounds && !woken; ++round) woken = is_woken(started);
    EXPECT_TRUE(woken) << (started ? "the caller of a started call" : "the caller");
  }
}

}  // namespace
}  // namespace testing_lrpc
