// Idle tails are given back (trimmed) while others call.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "conformance_service.h"
#include "eventually.h"
#include "held_calls.h"

namespace testing_lrpc {
namespace {

/// Holds the trimmer, which has all idle A-stacks in its hands, until the thread that made this waits for something.
class HeldTrimmer : public Watch {
 public:
  void punches() override {
    std::unique_lock lock(mutex_);
    holds_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, kPatience, [this] { return let_go_; });
  }
  void waits(void* /*word*/, std::uint32_t /*expected*/, std::uint32_t /*bits*/) override {
    if (std::this_thread::get_id() != caller_) return;
    waits_ = true;
    let_go();
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
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> waits_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = false;
  bool let_go_ = false;
};

TEST(Trimming, is_waited_for_by_a_caller_that_does_not_wait_for_astacks) {
  HeldTrimmer trimmer;
  ConformanceService service;
  lrpc::Server server;
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  ASSERT_TRUE(Conformance::serve_over(server, std::move(ends->first), service));
  auto client = Conformance::Client::import_over(std::move(ends->second), {.supply = lrpc::AStackSupply::fail});
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::byte> memory(100'000);
  const auto fill = [&] {
    lrpc::Buffer data(memory);
    return client->Fill(100'000, 7, data).code();
  };
  ASSERT_EQ(fill(), lrpc::Errc::ok) << "with its tail, which is given back a second later";
  trimmer.begin();
  ASSERT_TRUE(trimmer.wait_held());
  EXPECT_EQ(fill(), lrpc::Errc::ok) << "the A-stacks are there, if not to be had just now";
  EXPECT_TRUE(trimmer.caller_has_waited());
  trimmer.let_go();
  EXPECT_EQ(client->start().Add(1, 2).finish().value(), 3);
}

}  // namespace
}  // namespace testing_lrpc
