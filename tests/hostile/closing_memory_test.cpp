// Memory of any size, sent instead of a region. Freeing it takes time, which no calling or importing thread may spend.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <chrono>
#include <cstdint>
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
    EXPECT_TRUE(eventually([] { return copies_of_memory(kName) == 0; }));
  }
  /// Binds a client to this test, which serves no calls, so that the client asks for more A-stacks. Grants `count` of
  /// them, with memory that is not a region.
  static void expect_grant_left_to_closers(std::uint16_t count) {
    expect_left_to_closers(kName, [&] {
      auto bell = shim::make_socket_pair();
      ASSERT_TRUE(bell);
      auto ends = answered_pair(encoded(conformance_answer()), std::array{good_region().get(), bell->second.get()});
      ASSERT_TRUE(ends);
      // With this `grown_idle` only calls look for the answer.
      auto client = Conformance::Client::import_over(
          std::move(ends->first), {.supply = lrpc::AStackSupply::grow, .grown_idle = 1h, .call_timeout = 5ms});
      ASSERT_TRUE(client) << client.error().message();
      shim::PeerSocket line;
      bool granted = false;
      // A call that finds no answer after a second gives its request up. So each request is answered before the next
      // call, however late that comes.
      EXPECT_TRUE(eventually([&] {
        EXPECT_FALSE(client->Add(1, 2));
        for (auto heard = shim::receive_bell(bell->first.get()); heard && *heard;
             heard = shim::receive_bell(bell->first.get())) {
          if ((*heard)->message != shim::BellMessage::grow) continue;
          line = std::move((*heard)->offered);
          granted = shim::grant_growth(line.get(), count, too_large().get()).has_value();
        }
        return (granted && shim::hung_up(line.get())) || !BusyClosers::still();  // the client has refused it
      }));
    });
  }
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

TEST_F(MemoryToAClient, in_place_of_a_secondary_region) { expect_grant_left_to_closers(1); }

TEST_F(MemoryToAClient, with_more_astacks_than_it_has_asked_for) { expect_grant_left_to_closers(0xffff); }

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
