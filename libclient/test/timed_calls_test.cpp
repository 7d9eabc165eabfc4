// Calls of a binding with a call_timeout carry the time that is left, so none is rung before limit_call().
#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "call/transfer.h"
#include "lrpc/detail/client/binding/binding_object.h"
#include "lrpc/detail/shim/no_limit.h"

namespace lrpc::client {
namespace {

/// Whether a caller of a binding with this call_timeout trusts a hint after it has chosen the exchange gate by it.
bool trusts_after_choosing(std::chrono::milliseconds call_timeout) {
  static constexpr AStackClass kClasses[] = {{.image_size = 16, .tail_size = 0, .count = 1}};
  BindingParts parts;
  parts.region = shim::Region::private_to_this_domain(*shim::RegionLayout::of(kClasses)).value();
  parts.call_timeout = call_timeout;
  parts.watched = false;
  const auto object = BindingObject::create(std::move(parts)).value();
  const Call call(*object, 0);
  const shim::PolledHint hint(shim::kNoProcessor - 1, 1);  // not the poller of any processor
  call.linkage().astack.head->polled.store(hint.bits());
  EXPECT_EQ(choose_way(*object, call.linkage(), false), shim::CallerPolicy::Way::exchange);
  return call.linkage().policy.trusts(hint.bits());
}

TEST(TimedCalls, trust_no_hint_so_that_each_passes_by_the_limit) {
  EXPECT_FALSE(trusts_after_choosing(std::chrono::hours(1)));
  EXPECT_TRUE(trusts_after_choosing(kNoLimit));
}

}  // namespace
}  // namespace lrpc::client
