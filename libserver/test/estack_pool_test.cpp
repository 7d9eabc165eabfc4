// The cost of one look at a binding with more calls than there are E-stacks.
#include "estacks/estack_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "binding_without_client.h"
#include "eventually.h"
#include "poller/poller_team.h"
#include "users.h"

namespace lrpc::server {
namespace {

/// A pool, and a binding without real calls: the test says which A-stacks have a call.
class EStackPoolTest : public testing::Test {
 protected:
  void start(const ServerOptions& options) {
    auto interface = std::make_shared<ServedInterface>();
    interface->pdl = &kPdl;
    binding_ = binding_without_client(std::move(interface));
    ASSERT_NE(binding_, nullptr);
    pollers_.emplace(options, processors_, grant_);
    pool_.emplace(options, processors_, *pollers_, [this](std::uint32_t) { ++asked_; });
    pool_->admit(*binding_);
  }
  void TearDown() override {
    if (!pool_) return;
    binding_->revoke();
    pool_->dismiss(*binding_);
    pool_->stop();
  }
  [[nodiscard]] bool associated(std::size_t astack) const {
    return binding_->astacks()[astack].estack.load() != nullptr;
  }
  /// Does what the clerk does when it finds calls on these A-stacks.
  void look(std::size_t first, std::size_t end) {
    std::size_t waiting = 0;
    for (std::size_t i = first; i < end; ++i) {
      if (!pool_->associate(binding_, binding_->astacks()[i], waiting != 0)) ++waiting;
    }
    if (waiting != 0) pool_->reclaim(kAlice, waiting);
  }

  static constexpr std::size_t kCount = 64;
  static constexpr AStackClass kClass{64, 0, kCount};
  static constexpr Pdl kPdl{.interface = {.name = "Empty"}, .classes = {&kClass, 1}, .procedures = {}, .text = {}};

  DomainProcessors processors_;
  PollerGrant grant_{[] {}};
  std::atomic<int> asked_{0};
  std::shared_ptr<ServedBinding> binding_;
  std::optional<PollerTeam> pollers_;
  std::optional<EStackPool> pool_;
};

TEST_F(EStackPoolTest, one_look_searches_once_for_estacks_to_take_however_many_calls_wait) {
  start({.max_estacks = 2, .max_estacks_per_user = kNoLimit});
  look(0, 2);
  EXPECT_EQ(pool_->searches(), 0U) << "there were enough";
  EXPECT_TRUE(associated(0) && associated(1));
  look(2, kCount);
  EXPECT_LE(pool_->searches(), 1U);
  EXPECT_TRUE(testing_lrpc::eventually([&] { return !associated(0) || !associated(1); })) << "one is taken, or leaves";
}

TEST_F(EStackPoolTest, one_look_takes_no_more_estacks_than_calls_wait) {
  start({.max_estacks = 4, .max_estacks_per_user = kNoLimit});
  look(0, 4);
  look(4, 5);
  ServerStatistics counted;
  pool_->count(counted);
  EXPECT_LE(counted.estacks_reclaimed, 1U);
  EXPECT_TRUE(testing_lrpc::eventually([&] { return associated(4); }));
}

TEST_F(EStackPoolTest, one_look_does_not_try_for_each_call_to_start_a_thread) {
  start({.estack_size = std::size_t{1} << 60, .max_estacks = 8});
  look(0, kCount);
  EXPECT_FALSE(associated(0)) << "no machine has so much memory";
  EXPECT_GE(asked_, 1) << "for another attempt later";
  EXPECT_LE(asked_, 2);
}

}  // namespace
}  // namespace lrpc::server
