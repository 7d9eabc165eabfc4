// Regions that clients have left, on a thread of their own. Here that thread is held up, as a large region holds it up.
#include "call/unmapper.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <future>
#include <memory>
#include <utility>

#include "eventually.h"
#include "users.h"

namespace lrpc::server {
namespace {

class UnmapperTest : public testing::Test {
 protected:
  UnmapperTest() { EXPECT_TRUE(unmapper_->thread().post(busy_)); }
  ~UnmapperTest() override { go_on(); }
  void go_on() {
    if (!std::exchange(gone_on_, true)) free_.set_value();
  }
  Unmapper::Place place_for(std::uint64_t bytes, uid_t user = kAlice) {
    return unmapper_->place_for(bytes, accounts_->take(user, {.region_bytes = bytes}));
  }
  static shim::Region region() {
    static constexpr AStackClass kClass{64, 0, 1};
    return *shim::Region::private_to_this_domain(*shim::RegionLayout::of({&kClass, 1}));
  }
  [[nodiscard]] static bool mapped(void* page) {
    unsigned char resident = 0;
    return mincore(page, 1, &resident) == 0 || errno != ENOMEM;
  }
  [[nodiscard]] std::uint64_t counted() const { return accounts_->all().region_bytes; }
  [[nodiscard]] std::uint64_t left() const { return accounts_->all().left_bytes; }

  const std::shared_ptr<Accounts> accounts_ = std::make_shared<Accounts>(ServerOptions{});
  const std::shared_ptr<Unmapper> unmapper_ = std::make_shared<Unmapper>();

 private:
  std::promise<void> free_;
  bool gone_on_ = false;
  const shim::Watcher::Task busy_{[held = free_.get_future().share()] { held.wait(); }};
};

TEST_F(UnmapperTest, whoever_releases_a_large_region_does_not_unmap_it) {
  shim::Region large = region();
  void* const page = large.astack(0).head;
  auto place = place_for(Unmapper::kLarge);
  place.unmap(std::move(large));
  EXPECT_TRUE(mapped(page));
  EXPECT_EQ(left(), Unmapper::kLarge);
  go_on();
  EXPECT_TRUE(testing_lrpc::eventually([&] { return left() == 0; }));
  EXPECT_FALSE(mapped(page));
}

TEST_F(UnmapperTest, a_small_region_is_unmapped_at_once) {
  shim::Region small = region();
  void* const page = small.astack(0).head;
  auto place = place_for(Unmapper::kLarge - 1);
  place.unmap(std::move(small));
  EXPECT_FALSE(mapped(page));
  EXPECT_EQ(counted(), 0U);
}

TEST_F(UnmapperTest, only_so_much_of_one_user_waits_for_the_thread_without_counting) {
  auto first = place_for(Unmapper::kUncounted);
  auto second = place_for(Unmapper::kLarge);
  auto of_another = place_for(Unmapper::kUncounted, kBob);
  first.settle();
  EXPECT_EQ(counted(), Unmapper::kLarge + Unmapper::kUncounted);
  second.settle();
  EXPECT_EQ(counted(), Unmapper::kLarge + Unmapper::kUncounted);
  of_another.settle();
  EXPECT_EQ(counted(), Unmapper::kLarge);
  for (auto* const one : {&first, &second, &of_another}) one->unmap(region());
  EXPECT_EQ(counted(), Unmapper::kLarge);
  go_on();
  EXPECT_TRUE(testing_lrpc::eventually([&] { return accounts_->all() == Holding{}; }));
  auto third = place_for(Unmapper::kLarge);
  third.settle();
  EXPECT_EQ(counted(), 0U) << "what has been unmapped makes room";
}

}  // namespace
}  // namespace lrpc::server
