// If there is no memory for an event, one connection ends or is refused, and the nameserver goes on.
#include <atomic>
#include <new>

#include "allocator/allocator_driver.h"
#include "loop/event_loop.h"
#include "lrpc/detail/shim/binder/allocator_page.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

/// The handlers allocate nothing themselves: what they throw is all that the loop notices.
class LoopWithoutMemory : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    auto loop = EventLoop::create(GetParam());
    if (!loop) GTEST_SKIP() << loop.error().message();
    loop_ = std::move(*loop);
  }
  void run() {
    const auto status = loop_->run();
    EXPECT_TRUE(status) << status.error().message();
  }

  std::unique_ptr<EventLoop> loop_;
};
LRPC_ON_BOTH_BACKENDS(LoopWithoutMemory);

TEST_P(LoopWithoutMemory, goes_on_and_hears_of_what_was_left) {
  auto pair = shim::make_socket_pair();
  ASSERT_TRUE(pair);
  ASSERT_EQ(::send(pair->first.get(), "x", 1, 0), 1);
  int heard = 0;
  const auto watched = loop_->watch(pair->second.get(), {.readable = true}, [&](Readiness) {
    if (++heard < 3) throw std::bad_alloc();
    char byte = 0;
    EXPECT_EQ(::recv(pair->second.get(), &byte, 1, MSG_DONTWAIT), 1);
    loop_->stop();
  });
  ASSERT_TRUE(watched);
  run();
  EXPECT_EQ(heard, 3);
}

TEST_P(LoopWithoutMemory, fires_a_timer_again) {
  int fired = 0;
  loop_->after(milliseconds(1), [&] {
    if (++fired < 3) throw std::bad_alloc();
    loop_->stop();
  });
  run();
  EXPECT_EQ(fired, 3);
}

TEST_P(LoopWithoutMemory, keeps_no_other_timer_waiting_for_one_that_can_be_cancelled) {
  int fired = 0;
  int until_cancelled = 0;
  EventLoop::TimerId without;
  without = loop_->after(milliseconds(0), [&] {
    ++fired;
    throw std::bad_alloc();
  });
  loop_->after(milliseconds(1), [&] {
    loop_->cancel(without);
    until_cancelled = fired;
    loop_->after(milliseconds(30), [this] { loop_->stop(); });
  });
  run();
  EXPECT_GE(fired, 1);
  EXPECT_EQ(fired, until_cancelled);
}

TEST_P(LoopWithoutMemory, leaves_the_processor_allocator_one_timer_at_most) {
  shim::AllocatorPageMapping page;
  int looks = 0;
  AllocatorDriver driver(*loop_, milliseconds(0), false, [&]() -> std::optional<MachineLoad> {
    if (++looks % 5 == 0) throw std::bad_alloc();
    page->counters.hot_calls.fetch_add(1);  // wakes it whenever it has fallen asleep
    return std::nullopt;
  });
  auto shared = driver.add(1, {});
  ASSERT_TRUE(shared && page.put(std::move(*shared)));
  driver.wake();
  // Each timer fires once per step.
  EXPECT_TRUE(eventually([&] {
    const int before = looks;
    const std::uint64_t ticks = driver.statistics().ticks;
    EXPECT_TRUE(loop_->step());
    EXPECT_LE(driver.statistics().ticks - ticks, 1U) << "after " << before << " looks at the machine";
    return looks > 50;
  }));
}

/// Throws std::bad_alloc for one name.
class PolicyWithoutMemory final : public Policy {
 public:
  Status may_export(const Peer& /*peer*/, std::string_view name) override { return look(name); }
  Status may_import(const Peer& /*peer*/, std::string_view name, const shim::Credentials* /*server*/) override {
    return look(name);
  }

 private:
  static Status look(std::string_view name) {
    if (name == "large") throw std::bad_alloc();
    return {};
  }
};

using WithoutMemory = WithNameserver;
LRPC_ON_BOTH_BACKENDS(WithoutMemory);

TEST_P(WithoutMemory, for_its_request_a_connection_ends_and_no_other) {
  options_.policy = std::make_shared<PolicyWithoutMemory>();
  START_NAMESERVER();
  TestPeer server(path());
  EXPECT_NE(server.export_name("small"), 0U);
  for (const bool exports : {true, false}) {
    TestPeer peer(path());
    if (exports) {
      EXPECT_NE(peer.export_name("of.its"), 0U);
      peer.ask(shim::ExportRequest{"large", kFiles, kClasses, "interface"});
    } else {
      peer.import("large", kWaits);
    }
    EXPECT_TRUE(peer.hung_up_on());
    TestPeer other(path());
    other.import("of.its");
    EXPECT_EQ(other.next_failure(), Errc::name_unknown);
    other.import("small");
    EXPECT_TRUE(server.answer_bind());
    EXPECT_TRUE(other.next_as<shim::Bound>());
  }
}

TEST_P(WithoutMemory, what_would_stay_or_is_long_is_refused_and_names_can_go) {
  std::atomic<bool> is_short = false;
  options_.short_of_memory = [&] { return is_short.load(); };
  START_NAMESERVER();
  TestPeer peer(path());
  const std::uint64_t exported = peer.export_name("files");
  is_short = true;
  peer.ask(shim::ListRequest{});
  EXPECT_EQ(peer.next_failure(), Errc::limit_reached);
  peer.ask(shim::DescribeRequest{"files"});
  EXPECT_EQ(peer.next_failure(), Errc::limit_reached);
  peer.ask(shim::ExportRequest{"more", kFiles, kClasses, "interface"});
  EXPECT_EQ(peer.next_failure(), Errc::limit_reached);
  peer.import("files");
  EXPECT_EQ(peer.next_failure(), Errc::limit_reached);
  peer.ask(shim::WithdrawRequest{exported});
  EXPECT_TRUE(peer.next_as<shim::Withdrawn>());
  is_short = false;
  EXPECT_TRUE(peer.is_served());
}

}  // namespace
}  // namespace lrpc::nameserver::test
