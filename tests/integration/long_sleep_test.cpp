// What ends the long sleeps of E-stacks. An E-stack whose A-stack a poller has, or may take back, never sleeps long
// (H3): if a poller is stuck in another client's procedure, a one-way call that is left to it wakes nobody.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <mutex>
#include <optional>
#include <set>

#include "conformance_service.h"
#include "eventually.h"
#include "held_calls.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/system/futex.h"
#include "poller_thread.h"

namespace testing_lrpc {
namespace {

using lrpc::Gate;

/// The A-stacks whose E-stacks sleep longer than kBoundedSleep.
class LongSleeps : public Watch {
 public:
  void waits(void* word, std::uint32_t /*expected*/, std::uint32_t bits, std::chrono::nanoseconds limit) override {
    if (!is_long_sleep_of_estack(bits, limit)) return;
    const std::lock_guard lock(mutex_);
    asleep_.insert(static_cast<lrpc::shim::AStackHead*>(word));  // the word is its first member
  }
  void waited(void* word, std::uint32_t /*bits*/, long result) override {
    const std::lock_guard lock(mutex_);
    if (asleep_.erase(static_cast<lrpc::shim::AStackHead*>(word)) != 0) woken_ = result == 0;
  }
  /// Requeues all that sleep on one of the words to another futex, as a client may do: no wake-up of the word reaches
  /// them then.
  [[nodiscard]] bool steal() {
    const std::lock_guard lock(mutex_);
    for (lrpc::shim::AStackHead* const head : asleep_)
      if (::syscall(SYS_futex, &head->word, FUTEX_REQUEUE, 0, INT_MAX, &head->attached, 0) <= 0) return false;
    return !asleep_.empty();
  }
  /// Whether the last long sleep was ended by a wake-up.
  [[nodiscard]] bool woken() {
    const std::lock_guard lock(mutex_);
    return woken_;
  }
  [[nodiscard]] std::size_t count() {
    const std::lock_guard lock(mutex_);
    return asleep_.size();
  }
  /// Reliable, because the hint of an E-stack that wakes up changes only after waited().
  [[nodiscard]] bool one_is_polled() {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(asleep_, [](const auto* head) { return head->polled != 0; });
  }

 private:
  std::mutex mutex_;
  std::set<lrpc::shim::AStackHead*> asleep_;
  bool woken_ = false;
};

struct Noted : ConformanceService {
  void Null(CallContext&) { polled = on_poller_thread(); }
  std::atomic<bool> polled{false};
};

TEST(LongSleeps, of_estacks_end_before_a_poller_takes_their_calls) {
  if (only_one_processor()) GTEST_SKIP() << "nobody polls on the only processor";
  LongSleeps watch;
  watch.begin();
  Noted service;
  lrpc::Server server({.estack_idle = lrpc::kNoLimit});
  auto client = bind_privately(server, service, {.gate = Gate::exchange});
  auto other = bind_privately(server, service, {.gate = Gate::exchange});
  ASSERT_TRUE(client && other);
  ASSERT_TRUE(client->Null() && other->Null());
  const auto call_until_polled = [&](Conformance::Client& caller) {
    service.polled = false;
    for (int i = 0; i < 10'000 && !service.polled; ++i) EXPECT_TRUE(caller.Null());
    return service.polled.load();
  };
  bool polled = false;
  for (int round = 0; round < 4; ++round) {
    auto& caller = round % 2 == 0 ? *client : *other;  // the poller still remembers the other client
    polled = call_until_polled(caller) || polled;
    for (int i = 0; i < 1'000; ++i) {
      EXPECT_TRUE(caller.Null());
      ASSERT_FALSE(watch.one_is_polled());
    }
    ASSERT_TRUE(eventually([&] { return watch.count() == 2; })) << "both sleep, the poller too";
  }
  if (!polled) GTEST_SKIP() << "no poller has come by";
}

/// A client steals them: it requeues the sleepers to a futex of its own.
TEST(LongSleeps, that_are_stolen_end_when_the_server_stops_or_the_binding_does) {
  if (!lrpc::shim::can_wait_any()) GTEST_SKIP() << "futex_waitv(2) is missing or refused";
  for (const bool server_stops : {true, false}) {
    LongSleeps watch;
    watch.begin();
    Noted service;
    std::optional<lrpc::Server> server(std::in_place, lrpc::ServerOptions{.estack_idle = lrpc::kNoLimit});
    auto client = bind_privately(*server, service, {.gate = Gate::exchange});
    ASSERT_TRUE(client && client->Null());
    ASSERT_TRUE(eventually([&] { return watch.steal(); }));
    if (server_stops) {
      server.reset();
    } else {
      client = lrpc::Errc::binding_revoked;  // ends the binding
    }
    EXPECT_TRUE(eventually([&] { return watch.count() == 0; }));
    EXPECT_TRUE(watch.woken()) << "not only when its time was over";
  }
}

}  // namespace
}  // namespace testing_lrpc
