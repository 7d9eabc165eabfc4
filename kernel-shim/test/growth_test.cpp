#include "lrpc/detail/shim/binder/growth.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <string>

#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::shim {
namespace {

using namespace std::chrono_literals;

class Growth : public testing::Test {
 protected:
  void SetUp() override {
    auto bell = make_socket_pair();
    ASSERT_TRUE(bell);
    client_ = std::move(bell->first);
    clerk_ = std::move(bell->second);
  }
  /// Asks for growth, and takes the line off the bell.
  void ask(const GrowthRequest& request) {
    auto line = ask_for_growth(client_.get(), request);
    ASSERT_TRUE(line) << line.error().message();
    line_ = *std::move(line);
    auto news = receive_bell(clerk_.get());
    ASSERT_TRUE(news && news->has_value());
    ASSERT_EQ((*news)->message, BellMessage::grow);
    clerks_line_ = std::move((*news)->offered);
  }
  UniqueFd client_, clerk_, line_;
  PeerSocket clerks_line_;
};

TEST_F(Growth, a_request_waits_in_its_line) {
  const GrowthRequest request{.astack_class = 300, .place = 15, .count = 64};
  ask(request);
  auto taken = take_growth_request(clerks_line_.get());
  ASSERT_TRUE(taken);
  EXPECT_EQ(*taken, request);
  EXPECT_EQ(take_growth_request(clerks_line_.get()).code(), Errc::bad_message) << "there is one";
}

TEST_F(Growth, is_granted_with_one_descriptor) {
  ask({.astack_class = 0, .place = 0, .count = 8});
  auto nothing = receive_growth(line_.get(), 1ms);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->has_value());
  const UniqueFd memory(memfd_create("granted", MFD_CLOEXEC));
  ASSERT_TRUE(grant_growth(clerks_line_.get(), 5, memory.get()));
  auto answer = receive_growth(line_.get(), 1s);
  ASSERT_TRUE(answer && answer->has_value());
  EXPECT_EQ((*answer)->count, 5);
  EXPECT_EQ((*answer)->refusal, Errc::ok);
  EXPECT_TRUE((*answer)->region);
}

TEST_F(Growth, is_refused_with_a_reason) {
  ask({.astack_class = 0, .place = 0, .count = 8});
  refuse_growth(clerks_line_.get(), Errc::limit_reached);
  auto answer = receive_growth(line_.get(), 1s);
  ASSERT_TRUE(answer && answer->has_value());
  EXPECT_EQ((*answer)->count, 0);
  EXPECT_EQ((*answer)->refusal, Errc::limit_reached);
  EXPECT_FALSE((*answer)->region);
}

TEST_F(Growth, ends_with_the_line_on_either_side) {
  ask({.astack_class = 0, .place = 0, .count = 8});
  clerks_line_.reset();
  EXPECT_EQ(receive_growth(line_.get(), 1s).code(), Errc::peer_gone);
  ask({.astack_class = 0, .place = 0, .count = 8});
  line_.reset();
  EXPECT_EQ(grant_growth(clerks_line_.get(), 8, clerk_.get()).code(), Errc::peer_gone);
  refuse_growth(clerks_line_.get(), Errc::limit_reached);
}

TEST_F(Growth, of_a_full_or_broken_bell_is_not_waited_for) {
  for (int i = 0; i < 100'000; ++i) ring_bell(client_.get());
  EXPECT_EQ(ask_for_growth(client_.get(), {.astack_class = 0, .place = 0, .count = 1}).code(), Errc::timed_out);
  clerk_.reset();
  EXPECT_EQ(ask_for_growth(client_.get(), {.astack_class = 0, .place = 0, .count = 1}).code(), Errc::peer_gone);
}

TEST_F(Growth, garbage_in_a_line_is_named_on_both_sides) {
  ask({.astack_class = 0, .place = 0, .count = 8});
  (void)take_growth_request(clerks_line_.get());
  for (const std::string& garbage :
       {std::string("x"), std::string(7, '\xff'), std::string(8, '\1'), std::string(7, '\0'),
        std::string("\1\0\0\0\0\0\0", 7), std::string("\1\0\0\x10\0\1\0", 7)}) {
    ASSERT_EQ(send(line_.get(), garbage.data(), garbage.size(), 0), static_cast<ssize_t>(garbage.size()));
    EXPECT_EQ(take_growth_request(clerks_line_.get()).code(), Errc::bad_message);
  }
  for (const std::string& garbage :
       {std::string("x"), std::string(5, '\xff'), std::string(500, '\2'), std::string("\2\0\0\0\0", 5),
        std::string("\2\1\0\1\0", 5), std::string("\2\1\0\0\0", 5)}) {
    ASSERT_EQ(send(clerks_line_.get(), garbage.data(), garbage.size(), 0), static_cast<ssize_t>(garbage.size()));
    EXPECT_EQ(receive_growth(line_.get(), 1s).code(), Errc::bad_message);
  }
}

TEST(GrownClass, is_cut_down_to_what_fits) {
  const AStackClass declared{.image_size = 100, .tail_size = 1'000'000, .count = 5};
  EXPECT_EQ(class_that_fits(declared, 64, limits::kMaxRegionSize).count, 64);
  EXPECT_EQ(class_that_fits(declared, 0xffff, limits::kMaxRegionSize).count, kMostAStacksInSecondary);
  EXPECT_EQ(class_that_fits(declared, 7, 4 << 20).count, 3);
  EXPECT_EQ(class_that_fits(declared, 7, 1 << 20).count, 1);
  EXPECT_EQ(class_that_fits(declared, 7, 1000).count, 0);
  EXPECT_EQ(class_that_fits(declared, 0, 4 << 20).count, 0);
  const AStackClass huge{.image_size = 100, .tail_size = limits::kMaxTailSize, .count = 1};
  EXPECT_LT(class_that_fits(huge, 64, ~std::uint64_t{0}).count, 5);
}

}  // namespace
}  // namespace lrpc::shim
