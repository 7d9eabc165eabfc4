// What a server reports to the allocator while the allocator grants no poller.
#include "poller/poller_team.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace lrpc::server {
namespace {

/// The test holds the allocator's side of the page.
class PollerTeamTest : public testing::Test {
 protected:
  void SetUp() override {
    auto page = shim::create_allocator_page();
    ASSERT_TRUE(page);
    ASSERT_TRUE(allocator_.put(UniqueFd(::fcntl(page->get(), F_DUPFD_CLOEXEC, 0))));
    grant_.attach(std::move(*page));
    ASSERT_TRUE(grant_.has_page());
  }
  void rule(std::uint32_t pollers) { allocator_->ruling.word.store(shim::AllocatorRuling::of(pollers)); }
  /// Does what an E-stack does after it has served a hot call.
  void serve_hot_call(PollerTeam& team) {
    if (team.wants_offer(astack_, shim::this_moment())) team.offer(nullptr, astack_);
  }

  DomainProcessors processors_;
  shim::AllocatorPageMapping allocator_;
  PollerGrant grant_{[] {}};
  ServedAStack astack_;
};

TEST_F(PollerTeamTest, hot_calls_are_counted_while_the_allocator_withholds_pollers) {
  PollerTeam team({}, processors_, grant_);
  rule(0);
  for (int i = 0; i < 3; ++i) serve_hot_call(team);
  const shim::CountersCopy counters = shim::copy_counters(allocator_->counters);
  EXPECT_EQ(counters.hot_calls, 3U);
  EXPECT_TRUE(counters.wants_poller) << "or it never gets one while others are active";
  EXPECT_EQ(astack_.polled.load(), Polled::no);
}

TEST_F(PollerTeamTest, calls_that_no_poller_could_have_are_not_counted) {
  rule(0);
  ServerOptions without;
  without.pollers = 0;
  PollerTeam none(without, processors_, grant_);
  serve_hot_call(none);
  PollerTeam team({}, processors_, grant_);
  astack_.not_before.store(shim::this_moment().after(shim::Moment::kFarUs));
  serve_hot_call(team);
  EXPECT_EQ(shim::copy_counters(allocator_->counters).hot_calls, 0U);
}

}  // namespace
}  // namespace lrpc::server
