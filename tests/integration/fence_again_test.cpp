// A kernel that refuses membarrier(2) for some time.
#include <gtest/gtest.h>

#include <atomic>

#include "conformance_service.h"
#include "eventually.h"
#include "held_calls.h"
#include "lrpc/detail/shim/call/caller_policy.h"
#include "poller_thread.h"

namespace testing_lrpc {
namespace {

class Refusal : public Watch {
 public:
  bool refuses_fence() override { return refuses; }
  std::atomic<bool> refuses{false};
};

/// Whether a poller comes whose hint promises a fence (`fenced`), or that there is none.
bool a_hint_comes(Conformance::Client& client, bool fenced) {
  return eventually([&] {
    for (int i = 0; i < 1000; ++i) {
      auto call = client.start().Add(1, 2);
      const lrpc::shim::PolledHint hint(lrpc::detail::StubAccess::call(call).linkage().astack.head->polled.load());
      EXPECT_EQ(call.finish().value(), 3);
      if (hint.polled() && hint.polled_and_fenced() == fenced) return true;
    }
    return false;
  });
}

TEST(FenceAgain, a_poller_that_was_refused_once_promises_again_when_the_kernel_fences_again) {
  if (only_one_processor()) GTEST_SKIP() << "nobody polls on the only processor";
  if (!lrpc::shim::have_shared_fence) GTEST_SKIP() << "the kernel refuses membarrier(2) anyway";
  Refusal refusal;
  ConformanceService service;
  lrpc::Server server;
  auto client = bind_privately(server, service, {.gate = lrpc::Gate::exchange});
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(a_hint_comes(*client, true));
  refusal.refuses = true;
  refusal.begin();
  ASSERT_TRUE(a_hint_comes(*client, false));
  refusal.refuses = false;
  EXPECT_TRUE(a_hint_comes(*client, true));
}

}  // namespace
}  // namespace testing_lrpc
