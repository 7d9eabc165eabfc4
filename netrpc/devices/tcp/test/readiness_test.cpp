// Which thread is told that a connection can be read, while procedures run.
#include "netrpc/devices/tcp/readiness.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "eventually.h"
#include "lrpc/detail/shim/system/fd.h"
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
        // The readiness was known before the procedure began, so the thread that leads meanwhile is told without a
        // kernel wait.
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

TEST_P(Engines, a_descriptor_that_is_watched_again_while_it_waits_for_its_turn_is_told_once) {
  a_->start(1);
  const UniqueFd twice(::eventfd(1, EFD_CLOEXEC));
  std::map<std::uint64_t, UniqueFd> others;
  std::vector<std::uint64_t> told;
  std::unique_ptr<Readiness> readiness;
  constexpr std::uint64_t kTwice = 4;
  constexpr std::uint64_t kLast = 5;
  for (const std::uint64_t id : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, kLast})
    others.emplace(id, ::eventfd(1, EFD_CLOEXEC));
  a_->inside([&] {
    const auto ready = [&](std::uint64_t id, std::uint32_t) {
      told.push_back(id);
      if (id == 2) {
        EXPECT_TRUE(readiness->watch_again(twice.get(), kTwice, EPOLLIN));
      }
      if (id == kTwice) {
        EXPECT_TRUE(readiness->watch(others.at(kLast).get(), kLast, EPOLLIN));
      }
    };
    // The second host has two ready descriptors. Between them comes the second turn of the first host, and before it a
    // poll.
    auto made = Readiness::make(**a_, a_->engine(), ready, [](std::uint64_t id) { return id % 2; });
    ASSERT_TRUE(made) << made.error().message();
    readiness = std::move(made).value();
    for (const std::uint64_t id : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}})
      EXPECT_TRUE(readiness->watch(others.at(id).get(), id, EPOLLIN));
    EXPECT_TRUE(readiness->watch(twice.get(), kTwice, EPOLLIN));
  });
  EXPECT_TRUE(testing_lrpc::eventually([&] {
    bool last = false;
    a_->inside([&] { last = !told.empty() && told.back() == kLast; });
    return last;
  }));
  a_->inside([&] {
    EXPECT_EQ(std::ranges::count(told, kTwice), 1);
    readiness.reset();
  });
}

}  // namespace
}  // namespace lrpc::netrpc::test
