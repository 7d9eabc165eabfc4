// Who holds the places of a poller's full hot set.
#include "poller/hot_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "users.h"

namespace lrpc::server {
namespace {

constexpr std::size_t kPlaces = 64;

/// A hot set whose A-stacks are called one after another.
class HotSetPlaces : public testing::Test {
 protected:
  void fill(Holder holder, std::size_t count = kPlaces) {
    for (std::size_t i = 0; i < count; ++i) places_.push_back({.holder = holder, .last_hit = ++ticks_});
  }
  /// Does what the poller does with an offer. Returns whether the offer was taken.
  bool offer(Holder holder) {
    const auto place = place_for(holder, places_);
    if (place) places_[*place] = {.holder = holder, .last_hit = ++ticks_};
    return place.has_value();
  }
  [[nodiscard]] std::ptrdiff_t held(Holder holder) const {
    return std::ranges::count(places_, holder, &HotPlace::holder);
  }

  std::vector<HotPlace> places_;
  std::uint64_t ticks_ = 0;
};

TEST_F(HotSetPlaces, of_a_user_that_calls_each_of_them_rarely_keep_no_other_user_out) {
  fill(kAlice);
  EXPECT_TRUE(offer(kBob));
  for (int i = 0; i < 1'000; ++i) EXPECT_FALSE(offer(kAlice)) << "its A-stack that went is called again";
  EXPECT_EQ(held(kBob), 1) << "and stays";
}

TEST_F(HotSetPlaces, the_one_that_was_called_least_recently_goes) {
  fill(kAlice);
  places_[0].last_hit = places_[1].last_hit = ++ticks_;
  EXPECT_EQ(place_for(kBob, places_), std::optional<std::size_t>(2));
}

TEST_F(HotSetPlaces, of_one_user_alone_stay_as_they_are) {
  fill(kAlice);
  EXPECT_FALSE(offer(kAlice));
}

TEST_F(HotSetPlaces, are_shared_among_users_and_do_not_change_hands_again) {
  constexpr uid_t kUsers = 5;
  fill(kAlice);
  int taken = 0;
  for (int i = 0; i < 1'000; ++i) {
    for (uid_t user = kAlice; user < kAlice + kUsers; ++user) taken += offer(user) ? 1 : 0;
  }
  for (uid_t user = kAlice; user < kAlice + kUsers; ++user) EXPECT_GE(held(user), 12) << user;
  EXPECT_EQ(taken, 64 - held(kAlice)) << "none that was given away was taken back";
}

TEST_F(HotSetPlaces, of_other_hosts_are_those_of_one_user_and_shared_among_the_hosts) {
  for (std::uint64_t host = 1; host <= kPlaces; ++host) fill({kNobodyHere.uid, host}, 1);
  EXPECT_TRUE(offer(kBob)) << "however many hosts there are";
  for (int i = 0; i < 100; ++i) (void)offer(kBob);
  EXPECT_EQ(held(kBob), 32);
  EXPECT_FALSE(offer({kNobodyHere.uid, 1}));

  places_.clear();
  fill({kNobodyHere.uid, 1}, 32);
  fill(kBob, 32);
  EXPECT_TRUE(offer({kNobodyHere.uid, 2}));
  EXPECT_EQ(held(kBob), 32) << "at the other host's expense";
}

}  // namespace
}  // namespace lrpc::server
