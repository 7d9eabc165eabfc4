// Many hostile users whose connections are slow to close. Needs root, to be several users. The nameserver runs as on a
// kernel that cannot refuse descriptors.
#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "crowd.h"
#include "refused_calls.h"
#include "send_packet.h"
#include "slow_to_close.h"

namespace lrpc::nameserver::test {
namespace {

/// If the kernel refuses descriptors, none that is slow to close reaches a nameserver.
class SlowCrowd : public Crowd {
 protected:
  /// Skips the test if such a kernel cannot be simulated here.
  void start_without_pass_rights() {
    bool can = true;
    std::thread([&] {
      can = testing_lrpc::forget_pass_rights();
      if (can) start();
    }).join();
    if (!can) GTEST_SKIP() << testing_lrpc::kNoSuchKernel;
  }
  /// Sends a descriptor that is slow to close. Afterwards only `peer`'s socket holds it.
  void send_slow(TestPeer& peer) {
    slow_.push_back(make(testing_lrpc::Slow::lingering));
    ASSERT_NE(slow_.back(), nullptr);
    ASSERT_TRUE(eventually([&] {
      return testing_lrpc::send_packet(peer.fd(), std::array{std::byte{'x'}}, std::array{slow_.back()->get()});
    }));
    slow_.back()->give_away();
  }
  void TearDown() override {
    peers_.clear();
    slow_.clear();
    if (nameserver_ != nullptr) {
      EXPECT_TRUE(back_to_idle());
    }
    Crowd::TearDown();
  }

  std::vector<std::unique_ptr<testing_lrpc::SlowToClose>> slow_;
};
LRPC_ON_BOTH_BACKENDS(SlowCrowd);

TEST_P(SlowCrowd, that_is_still_being_disconnected_gives_its_place_to_newcomers) {
  options_.limits.max_connections = 16;
  const auto policy = std::make_shared<CountingPolicy>();
  options_.policy = policy;
  start_without_pass_rights();
  if (nameserver_ == nullptr) return;
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(is_admitted(peers_.emplace_back(connect(kHostile))));
  TestPeer holder = connect(0);
  hold(holder, *policy);
  for (TestPeer& peer : peers_) send_slow(peer);
  policy->go_on();
  for (TestPeer& peer : peers_) EXPECT_TRUE(peer.hung_up_on());
  std::list<TestPeer> newcomers;
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(newcomers.emplace_back(connect(kHonestClient)).is_served()) << i;
}

TEST_P(SlowCrowd, loses_a_connection_to_a_newcomer_also_where_that_is_slow_to_close) {
  options_.limits.max_connections = 16;
  options_.unread_timeout = kNoLimit;
  start_without_pass_rights();
  if (nameserver_ == nullptr) return;
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(is_admitted(peers_.emplace_back(connect(kHostile))));
  TestPeer& deaf = peers_.back();  // does not read its answers, so its last message is not read either
  const auto ask = [&] {
    return shim::send_message(deaf.fd(), {1, shim::ListRequest{}, {}, {}}, kDoNotWait).has_value();
  };
  TestPeer other = connect(0);
  do {  // until the nameserver reads none of its messages in a whole turn
    while (ask()) continue;
    ASSERT_TRUE(other.is_served() && other.is_served());
  } while (ask());
  while (!ask() && shim::receive_message(deaf.fd(), milliseconds(1))) continue;
  send_slow(deaf);
  TestPeer newcomer = connect(kHonestClient);
  EXPECT_TRUE(newcomer.is_served());
}

}  // namespace
}  // namespace lrpc::nameserver::test
