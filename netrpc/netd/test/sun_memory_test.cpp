// Calls of Sun RPC programs when there is no memory.
#include "netrpc/sim/test/counted_allocations.h"
#include "sun_clients.h"

namespace lrpc::netd::test {
namespace {

TEST_F(SunClients, say_that_a_call_was_not_executed_only_if_memory_was_short_before_it_was_sent) {
  const auto mine = bind(kUser).value();
  calls_->takes = 1s;
  const std::size_t sent = calls_->timeouts.size();
  netrpc::deny_memory(true);
  const Errc before = call(*mine);
  netrpc::deny_memory(false);
  EXPECT_EQ(before, Errc::limit_reached);
  EXPECT_EQ(calls_->timeouts.size(), sent) << "nothing is sent";
  engine_.meanwhile = {[] { netrpc::deny_memory(true); }};
  const Errc after = call(*mine);
  netrpc::deny_memory(false);
  EXPECT_EQ(after, Errc::call_failed);
  EXPECT_EQ(calls_->timeouts.size(), sent + 1);
  EXPECT_EQ(call(*mine), Errc::ok);
}

}  // namespace
}  // namespace lrpc::netd::test
