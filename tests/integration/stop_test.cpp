// A server ends although its threads are blocked: by a procedure that does not return, or by a client that writes call
// words.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "conformance_service.h"
#include "eventually.h"
#include "held_calls.h"
#include "poller_thread.h"

namespace testing_lrpc {
namespace {

using lrpc::Gate;
using namespace std::chrono_literals;

/// When the poller executes NapFor, it blocks, once.
struct StuckInPoller : ConformanceService {
  void NapFor(CallContext&, std::uint32_t) {
    if (!on_poller_thread()) return;
    std::unique_lock lock(mutex);
    stuck = true;
    changed.notify_all();
    changed.wait(lock, [this] { return let_go; });
  }
  bool wait_stuck() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, [this] { return stuck; });
  }
  void go() {
    const std::lock_guard lock(mutex);
    let_go = true;
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool stuck = false;
  bool let_go = false;
};

TEST(StopOfAServer, beside_a_stuck_poller_ends_all_calls_at_once_and_itself_with_the_procedure) {
  if (only_one_processor()) GTEST_SKIP() << "nobody polls on the only processor";
  StuckInPoller service;
  std::optional<lrpc::Server> server(std::in_place);
  auto client = bind_privately(*server, service, {.gate = Gate::exchange});
  auto other = bind_privately(*server, service, {.gate = Gate::adaptive});
  ASSERT_TRUE(client && other);
  ASSERT_TRUE(other->Null());
  std::thread caller([&] {
    while (client->NapFor(0)) {
    }
  });
  if (!service.wait_stuck()) {
    service.go();
    lrpc::detail::StubAccess::object(client->binding()).revoke();
    caller.join();
    GTEST_SKIP() << "no poller has come by";
  }
  std::atomic<bool> stopped{false};
  std::thread stopper([&] {
    server.reset();
    stopped = true;
  });
  caller.join();  // its call has failed, although the procedure still runs
  EXPECT_TRUE(eventually([&] { return other->binding().revoked(); })) << "clients are told of the end";
  EXPECT_FALSE(other->Null());
  EXPECT_FALSE(stopped) << "the procedure uses what the server has";
  service.go();
  stopper.join();
}

/// Delays an E-stack before its long sleep until the server has woken it for its end, then makes it sleep all the same:
/// a client can do that by restoring the value that the E-stack expects.
class WordsWrittenBack : public Watch {
 public:
  void waits(void* word, std::uint32_t expected, std::uint32_t bits, std::chrono::nanoseconds limit) override {
    if (!is_long_sleep_of_estack(bits, limit)) return;
    std::unique_lock lock(mutex_);
    if (word_ != nullptr) return;
    word_ = word;
    changed_.notify_all();
    changed_.wait_for(lock, kPatience, [this] { return wakes_ >= kBeforeStopWaits; });
    // Only the low half, which the futex compares.
    __atomic_store_n(static_cast<std::uint32_t*>(word), expected, __ATOMIC_SEQ_CST);
  }
  void waited(void* word, std::uint32_t /*bits*/, long result) override {
    const std::lock_guard lock(mutex_);
    if (word != word_ || ended_) return;
    ended_ = true;
    woken_ = result == 0 || errno == EAGAIN;  // EAGAIN: the server's own word has changed
  }
  void woke(void* word, std::uint32_t /*bits*/) override {
    const std::lock_guard lock(mutex_);
    if (word != word_) return;
    ++wakes_;
    changed_.notify_all();
  }
  bool wait_parked() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return word_ != nullptr; });
  }
  [[nodiscard]] bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  [[nodiscard]] bool woken() {
    const std::lock_guard lock(mutex_);
    return woken_;
  }

 private:
  /// One by the revocation, one by the first attempt of the stop.
  static constexpr int kBeforeStopWaits = 2;
  std::mutex mutex_;
  std::condition_variable changed_;
  void* word_ = nullptr;
  int wakes_ = 0;
  bool ended_ = false;
  bool woken_ = false;
};

TEST(StopOfAServer, wakes_an_estack_again_whose_client_has_it_sleep_all_the_same) {
  WordsWrittenBack watch;
  watch.begin();
  {
    ConformanceService service;
    std::optional<lrpc::Server> server(std::in_place);
    auto client = bind_privately(*server, service, {.gate = Gate::sleep});
    ASSERT_TRUE(client) << client.error().message();
    ASSERT_TRUE(client->Null());
    ASSERT_TRUE(watch.wait_parked());
    server.reset();
  }
  EXPECT_TRUE(watch.ended());
  EXPECT_TRUE(watch.woken()) << "and did not sleep for as long as it could";
}

}  // namespace
}  // namespace testing_lrpc
