// Descriptors that are slow to close, sent to lrpcd in its sandbox, also on a kernel that cannot refuse descriptors for
// it. Nobody waits for them: the bystander is served before the test ends their wait (slow_to_close.h).
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "daemon.h"
#include "refused_calls.h"
#include "send_packet.h"
#include "slow_to_close.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

using testing_lrpc::Slow;

class SandboxedLrpcd {
 public:
  /// Starts it with this kernel, or as on one without SO_PASSRIGHTS. Skips the test if that is not possible here.
  void start(bool refuses) {
    bool can = true;
    std::thread([&] {
      can = refuses || testing_lrpc::forget_pass_rights();
      if (can) daemon_.emplace(std::vector<std::string>{"--socket", path(), "--sandbox", "required"});
    }).join();
    if (!can) GTEST_SKIP() << testing_lrpc::kNoSuchKernel;
    if (daemon_->ready()) return;
    (void)daemon_->end(0);
    GTEST_SKIP() << "lrpcd has no whole sandbox here: " << daemon_->output;
  }
  void end() { EXPECT_EQ(daemon_->end(SIGTERM), 0) << daemon_->output; }
  [[nodiscard]] std::string path() const { return directory_ / "s"; }
  /// 0 if only root may count them.
  [[nodiscard]] std::size_t descriptors() const {
    std::error_code may_not;
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(daemon_->pid()) + "/fd", may_not);
    return may_not ? 0 : static_cast<std::size_t>(std::distance(all, std::filesystem::directory_iterator()));
  }

 private:
  TemporaryDirectory directory_;
  std::optional<Daemon> daemon_;
};

class LrpcdInItsSandbox : public testing::TestWithParam<Slow> {
 protected:
  void SetUp() override {
    if (make(GetParam()) == nullptr) GTEST_SKIP() << "cannot be made here: " << testing_lrpc::name_of(GetParam());
  }
  /// Sends `messages` messages with a slow descriptor each, and hangs up. `refused`: the kernel may refuse all of them.
  void attack(int messages, bool refused) {
    const TestPeer attacker(lrpcd_.path());
    for (int i = 0; i < messages; ++i) {
      slow_.push_back(make(GetParam()));
      ASSERT_NE(slow_.back(), nullptr);
      const bool sent =
          testing_lrpc::send_packet(attacker.fd(), std::array{std::byte{'x'}}, std::array{slow_.back()->get()});
      EXPECT_TRUE(sent || refused || i > 0) << "after the first one lrpcd may have hung up";
      if (sent) slow_.back()->give_away_meanwhile();
    }
  }
  void expect_service_beside_attacks(bool refuses) {
    lrpcd_.start(refuses);
    if (IsSkipped()) return;
    TestPeer bystander(lrpcd_.path());
    ASSERT_TRUE(bystander.is_served());
    const std::size_t before = lrpcd_.descriptors();
    for (const int messages : {1, 2, 1}) {
      attack(messages, refuses);
      ASSERT_TRUE(bystander.is_served());
      ASSERT_TRUE(TestPeer(lrpcd_.path()).is_served());
    }
    slow_.clear();
    EXPECT_TRUE(eventually([&] { return lrpcd_.descriptors() == before; })) << "it has closed what it was sent";
    lrpcd_.end();
  }

 private:
  SandboxedLrpcd lrpcd_;
  std::vector<std::unique_ptr<testing_lrpc::SlowToClose>> slow_;  ///< Destroyed first: otherwise lrpcd might not end.
};
INSTANTIATE_TEST_SUITE_P(Kinds, LrpcdInItsSandbox, testing::ValuesIn(testing_lrpc::kSlow),
                         [](const auto& kind) { return testing_lrpc::name_of(kind.param); });

TEST_P(LrpcdInItsSandbox, serves_others_whatever_is_sent_to_it) { expect_service_beside_attacks(true); }

TEST_P(LrpcdInItsSandbox, serves_others_whatever_is_sent_to_it_on_a_kernel_that_refuses_no_descriptors) {
  expect_service_beside_attacks(false);
}

/// It has threads that close descriptors only while it needs them.
TEST(LrpcdOfManyMessages, keeps_nothing_of_who_has_gone) {
  for (const bool refuses : {true, false}) {
    SandboxedLrpcd lrpcd;
    lrpcd.start(refuses);
    if (testing::Test::IsSkipped()) return;
    TestPeer bystander(lrpcd.path());
    ASSERT_TRUE(bystander.is_served());
    const std::size_t before = lrpcd.descriptors();
    for (int i = 0; i < 300; ++i) {
      const TestPeer peer(lrpcd.path());
      for (int message = 0; message < 100; ++message) (void)::send(peer.fd(), "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    EXPECT_TRUE(eventually([&] { return lrpcd.descriptors() == before; })) << lrpcd.descriptors() - before;
    EXPECT_TRUE(bystander.is_served());
    lrpcd.end();
  }
}

}  // namespace
}  // namespace lrpc::nameserver::test
