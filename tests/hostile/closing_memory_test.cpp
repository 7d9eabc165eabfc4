// Memory of any size, sent instead of a region. Freeing it takes time, which no calling or importing thread may spend.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "bad_packets.h"
#include "busy_closers.h"
#include "conformance.client.h"
#include "eventually.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/growth.h"
#include "raw_binding.h"

namespace testing_lrpc {
namespace {

using namespace std::chrono_literals;
namespace shim = lrpc::shim;

constexpr auto kName = "not-a-region";  // the name that memory_file() gives it
constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

lrpc::UniqueFd too_large() { return memory_file(conformance_layout().size() + 4096, kSealed); }

class MemoryToAClient : public testing::Test {
 protected:
  void TearDown() override {
    closers_.reset();
    EXPECT_TRUE(eventually([] { return copies_of_memory(kName) == 0; }));
  }
  /// Binds a client to this test, which serves no calls, so that the client asks for more A-stacks. Grants `count` of
  /// them, with memory that is not a region.
  void grant(std::uint16_t count) {
    auto bell = shim::make_socket_pair();
    ASSERT_TRUE(bell);
    auto ends = answered_pair(encoded(conformance_answer()), std::array{good_region().get(), bell->second.get()});
    ASSERT_TRUE(ends);
    client_.emplace(Conformance::Client::import_over(std::move(ends->first),
                                                     {.supply = lrpc::AStackSupply::grow, .call_timeout = 50ms}));
    ASSERT_TRUE(*client_) << client_->error().message();
    bell_ = std::move(bell->first);
    ASSERT_TRUE(grant_again(count));
  }
  bool grant_again(std::uint16_t count) {
    return eventually([&] {  // again if the client has given up waiting, which it does after a second
      closers_.reset();
      EXPECT_FALSE((*client_)->Add(1, 2));
      auto heard = shim::receive_bell(bell_.get());
      if (!heard || !*heard || (*heard)->message != shim::BellMessage::grow) return false;
      line_ = std::move((*heard)->offered);
      closers_.emplace();
      return shim::grant_growth(line_.get(), count, too_large().get()).has_value();
    });
  }
  bool client_looks_and_leaves_it_open(std::uint16_t count) {
    return eventually([&] {
      EXPECT_FALSE((*client_)->Add(1, 2));
      if (copies_of_memory(kName) == 1) return true;
      if (!BusyClosers::still()) (void)grant_again(count);
      return false;
    });
  }

  std::optional<BusyClosers> closers_;
  std::optional<lrpc::Result<Conformance::Client>> client_;
  lrpc::UniqueFd bell_;
  shim::PeerSocket line_;
};

TEST_F(MemoryToAClient, in_place_of_a_region) {
  const auto bell = shim::make_socket_pair();
  ASSERT_TRUE(bell);
  expect_left_to_closers(kName, [&] {
    auto ends = answered_pair(encoded(conformance_answer()), std::array{too_large().get(), bell->second.get()});
    ASSERT_TRUE(ends);
    const auto client = Conformance::Client::import_over(std::move(ends->first));
    EXPECT_EQ(client.code(), lrpc::Errc::bad_message);
  });
}

TEST_F(MemoryToAClient, in_place_of_a_secondary_region) {
  ASSERT_NO_FATAL_FAILURE(grant(1));
  EXPECT_TRUE(client_looks_and_leaves_it_open(1));
}

TEST_F(MemoryToAClient, with_more_astacks_than_it_has_asked_for) {
  ASSERT_NO_FATAL_FAILURE(grant(0xffff));
  EXPECT_TRUE(client_looks_and_leaves_it_open(0xffff));
}

TEST_F(MemoryToAClient, in_an_answer_that_makes_no_sense) {
  expect_left_to_closers(kName, [] {
    auto line = shim::make_socket_pair();
    ASSERT_TRUE(line);
    const std::array<std::byte, 1> garbage{};
    ASSERT_TRUE(send_packet(line->first.get(), garbage, std::array{too_large().get()}));
    EXPECT_EQ(shim::receive_growth(line->second.get(), kPatience, {.user = ::geteuid()}).code(),
              lrpc::Errc::bad_message);
  });
}

}  // namespace
}  // namespace testing_lrpc
