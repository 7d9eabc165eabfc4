// What a server reports to the allocator while the allocator grants no poller; what a poller does that is full, or that
// would share its calls with another.
#include "poller/poller_team.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "binding_without_client.h"
#include "eventually.h"

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

TEST_F(PollerTeamTest, an_astack_for_which_a_full_poller_has_no_place_is_left_to_its_estack_for_a_while) {
  static constexpr AStackClass kClass{64, 0, Poller::kHotSet + 1};
  static constexpr Pdl kPdl{.interface = {.name = "Empty"}, .classes = {&kClass, 1}, .procedures = {}, .text = {}};
  auto interface = std::make_shared<ServedInterface>();
  interface->pdl = &kPdl;
  const auto binding = binding_without_client(std::move(interface));
  ASSERT_NE(binding, nullptr);
  ServerOptions options;
  options.pollers = 1;
  options.poll_window = std::chrono::seconds(1);  // no calls come, and it is not to park
  PollerTeam team(options, processors_, grant_);
  rule(1);
  const std::span<ServedAStack> astacks = binding->astacks();
  const auto offer = [&](ServedAStack& astack) {
    if (team.wants_offer(astack, shim::this_moment())) team.offer(binding, astack);
  };
  const ServedAStack* refused = nullptr;
  // The last one has to come while the poller has the others. It drops all whenever another thread takes its processor.
  EXPECT_TRUE(testing_lrpc::eventually([&] {
    for (ServedAStack& astack : astacks.first(Poller::kHotSet)) offer(astack);
    constexpr int kTries = 10'000;
    for (int i = 0; i < kTries && astacks.back().polled.load() != Polled::yes; ++i) offer(astacks.back());
    for (const ServedAStack& astack : astacks)
      if (astack.not_before.load() != 0) refused = &astack;
    return refused != nullptr;
  }));
  ASSERT_NE(refused, nullptr);
  EXPECT_TRUE(testing_lrpc::eventually([&] { return refused->polled.load() == Polled::no; }));
  const shim::Moment just_before{refused->not_before.load() - 1, shim::ticks_per_microsecond()};
  EXPECT_FALSE(team.wants_offer(*refused, just_before));
}

TEST_F(PollerTeamTest, a_poller_gets_a_helper_if_one_may_poll_and_none_soon_after_a_helper_has_ended) {
  const ServerOptions options;
  PollerTeam team(options, processors_, grant_);
  const Poller asks(team, 0, options, processors_, grant_);
  const shim::Moment now = shim::this_moment();
  rule(0);
  EXPECT_EQ(team.helper_for(asks, now), nullptr);
  rule(2);
  EXPECT_NE(team.helper_for(asks, now), nullptr);
  team.helper_ended(0, now);
  EXPECT_EQ(team.helper_for(asks, now), nullptr);
}

TEST_F(PollerTeamTest, a_poller_with_few_calls_keeps_them_while_no_other_one_polls) {
  const ServerOptions options;
  PollerTeam team(options, processors_, grant_);
  const Poller asks(team, 0, options, processors_, grant_);
  rule(2);
  EXPECT_EQ(team.room_beside(asks), nullptr);
}

}  // namespace
}  // namespace lrpc::server
