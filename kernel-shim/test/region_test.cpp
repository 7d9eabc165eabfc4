// Where the A-stacks of a region are, and that giving a tail back leaves its neighbours alone.
#include "lrpc/detail/shim/call/region.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace lrpc::shim {
namespace {

constexpr std::array<AStackClass, 2> kWithTails{AStackClass{.image_size = 40, .tail_size = 5'000, .count = 3},
                                                AStackClass{.image_size = 8, .tail_size = 1, .count = 2}};

TEST(RegionLayout, places_tails_by_whole_pages_of_any_machine) {
  for (const std::uint64_t page : {4'096U, 16'384U, 65'536U}) {
    const auto layout = RegionLayout::of(kWithTails, page);
    ASSERT_TRUE(layout);
    for (const RegionLayout::Class& placed : layout->classes()) {
      EXPECT_EQ(placed.tails_offset % page, 0U) << page;
      EXPECT_EQ(placed.tail_stride % page, 0U) << page;
      EXPECT_GE(placed.tail_stride, placed.declared.tail_size);
    }
    EXPECT_EQ(layout->size() % page, 0U) << page;
  }
  const auto own = RegionLayout::of(kWithTails);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->size(), RegionLayout::of(kWithTails, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)))->size());
}

TEST(Region, gives_back_one_tail_and_nothing_of_its_neighbours) {
  auto layout = RegionLayout::of(kWithTails);
  ASSERT_TRUE(layout);
  auto fd = create_region(*layout);
  ASSERT_TRUE(fd);
  const auto region = Region::map(*std::move(fd), *std::move(layout));
  ASSERT_TRUE(region);
  for (std::uint32_t i = 0; i < 3; ++i) region->astack(i).tail[0] = region->astack(i).tail[4'999] = std::byte{1};
  region->trim_tail(region->astack(1));
  for (const std::uint32_t i : {0U, 2U}) {
    EXPECT_EQ(region->astack(i).tail[0], std::byte{1});
    EXPECT_EQ(region->astack(i).tail[4'999], std::byte{1});
  }
  EXPECT_EQ(region->astack(1).tail[0], std::byte{0});
  EXPECT_EQ(region->astack(1).tail[4'999], std::byte{0});
}

}  // namespace
}  // namespace lrpc::shim
