// Who is told that a connection can be read, while procedures run.
#include "netrpc/devices/tcp/readiness.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <memory>
#include <utility>

#include "eventually.h"
#include "lrpc/shim/system/fd.h"
#include "netrpc/devices/device/test/engines.h"

namespace lrpc::netrpc::test {
namespace {

TEST_P(Engines, a_procedure_that_lasts_keeps_no_other_connection_from_being_told) {
  a_->start(3);
  const UniqueFd one(::eventfd(1, EFD_CLOEXEC));
  const UniqueFd other(::eventfd(1, EFD_CLOEXEC));
  std::atomic<int> told{0};
  std::atomic<bool> waited{false};
  std::uint64_t waits = 0;
  std::unique_ptr<Readiness> readiness;
  a_->inside([&] {
    const auto ready = [&](std::uint64_t, std::uint32_t) {
      if (++told != 1) {
        // It was known before the procedure began: who leads meanwhile is told without a wait in the kernel.
        EXPECT_EQ(a_->engine().statistics().waits, waits);
        return;
      }
      waits = a_->engine().statistics().waits;
      a_->engine().outside(**a_, [&] { EXPECT_TRUE(testing_lrpc::eventually([&] { return told == 2; })); });
      waited = true;
    };
    auto made = Readiness::make(**a_, a_->engine(), ready, [](std::uint64_t) { return 0; });
    ASSERT_TRUE(made) << made.error().message();
    readiness = std::move(made).value();
    EXPECT_TRUE(readiness->watch(one.get(), 1, EPOLLIN));
    EXPECT_TRUE(readiness->watch(other.get(), 2, EPOLLIN));
  });
  EXPECT_TRUE(testing_lrpc::eventually([&] { return waited.load(); })) << told << " told";
  a_->inside([&] { readiness.reset(); });
}

}  // namespace
}  // namespace lrpc::netrpc::test
