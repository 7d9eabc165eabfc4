// Idle tails are given back (trimmed) while other threads call.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "conformance_service.h"
#include "eventually.h"
#include "held_calls.h"

namespace testing_lrpc {
namespace {

/// Delays the trimmer, which has taken all idle A-stacks, until let_go(), or until the thread that made this object
/// waits for something.
class HeldTrimmer : public Watch {
 public:
  enum class Until : std::uint8_t { let_go, caller_waits };
  /// May be called again after let_go(), when no thread is delayed any more.
  void begin(Until until) {
    const std::lock_guard lock(mutex_);
    until_ = until;
    waits_ = holds_ = let_go_ = false;
    Watch::begin();
  }
  void punches() override {
    std::unique_lock lock(mutex_);
    holds_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, kPatience, [this] { return let_go_; });
  }
  void waits(void* /*word*/, std::uint32_t /*expected*/, std::uint32_t /*bits*/,
             std::chrono::nanoseconds /*limit*/) override {
    if (std::this_thread::get_id() != caller_) return;
    waits_ = true;
    if (until_ == Until::caller_waits) let_go();
  }
  bool wait_held() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return holds_; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool caller_has_waited() const noexcept { return waits_; }

 private:
  Until until_ = Until::let_go;
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> waits_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = false;
  bool let_go_ = false;
};

/// A client that does not wait for A-stacks, and whose trimmer is delayed; its server is in this process.
class Trimming : public testing::Test {
 protected:
  /// Tries again with another client if it takes so long that the tail may already have been given back.
  void hold(HeldTrimmer::Until until) {
    for (;;) {
      auto client = bind_privately(server_, service_, {.supply = lrpc::AStackSupply::fail});
      ASSERT_TRUE(client) << client.error().message();
      client_ = std::make_unique<Conformance::Client>(*std::move(client));
      const auto began = std::chrono::steady_clock::now();
      ASSERT_EQ(fill(), lrpc::Errc::ok) << "with its tail, which is given back a second later";
      trimmer_.begin(until);
      if (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(500)) break;
      trimmer_.let_go();
      client_ = nullptr;  // the destructor waits for the trimmer
    }
    ASSERT_TRUE(trimmer_.wait_held());
  }
  lrpc::Errc fill() {
    lrpc::Buffer data(memory_);
    return client_->Fill(100'000, 7, data).code();
  }

  HeldTrimmer trimmer_;  // must outlive the objects whose threads call it
  ConformanceService service_;
  lrpc::Server server_;
  std::unique_ptr<Conformance::Client> client_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(100'000);
};

TEST_F(Trimming, is_waited_for_by_a_caller_that_does_not_wait_for_astacks) {
  ASSERT_NO_FATAL_FAILURE(hold(HeldTrimmer::Until::caller_waits));
  EXPECT_EQ(fill(), lrpc::Errc::ok) << "the A-stacks are there, if not to be had just now";
  EXPECT_TRUE(trimmer_.caller_has_waited());
  trimmer_.let_go();
  EXPECT_EQ(client_->start().Add(1, 2).finish().value(), 3);
}

TEST_F(Trimming, that_outlasts_a_call_is_not_taken_for_a_want_of_astacks) {
  ASSERT_NO_FATAL_FAILURE(hold(HeldTrimmer::Until::let_go));
  {
    const lrpc::CallScope scope(std::chrono::milliseconds(20));
    EXPECT_EQ(fill(), lrpc::Errc::call_aborted) << "its time was over";
  }
  lrpc::Cancellation cancellation;
  cancellation.cancel();
  {
    const lrpc::CallScope scope(cancellation);
    EXPECT_EQ(fill(), lrpc::Errc::call_cancelled);
  }
  trimmer_.let_go();
  EXPECT_EQ(fill(), lrpc::Errc::ok);
}

/// Work for an ended binding may be done when another binding is at its address.
TEST_F(Trimming, of_a_binding_that_has_ended_leaves_the_next_one_at_its_address_alone) {
  const auto bind = [&] {
    client_ = std::make_unique<Conformance::Client>(bind_privately(server_, service_).value());
    return &lrpc::detail::StubAccess::object(client_->binding());
  };
  std::unique_ptr<Conformance::Client> next;
  const lrpc::client::BindingObject* ended = nullptr;
  for (int i = 0; i < 100 && next == nullptr; ++i) {
    ended = bind();
    ASSERT_EQ(fill(), lrpc::Errc::ok);
    client_ = nullptr;
    if (bind() == ended) next = std::move(client_);
  }
  if (next == nullptr) GTEST_SKIP() << "this allocator uses no address again";
  bind();
  ASSERT_EQ(fill(), lrpc::Errc::ok) << "later, so it is trimmed later";
  EXPECT_TRUE(eventually([&] { return lrpc::detail::StubAccess::object(client_->binding()).trim_phase() >= 2; }));
  EXPECT_EQ(lrpc::detail::StubAccess::object(next->binding()).trim_phase(), 0U) << "it has used no tail";
}

}  // namespace
}  // namespace testing_lrpc
