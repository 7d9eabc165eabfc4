// ChannelPool over channels whose calls the test completes.
#include "netrpc/protocols/select/channel_pool.h"

#include <functional>
#include <optional>
#include <utility>

#include "netrpc/protocols/select/test/select_hosts.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

/// A layer below whose calls the test completes, or which fails every call at once.
class HeldChannels final : public Protocol {
 public:
  explicit HeldChannels(Host& host) : Protocol(host, "held") {}
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    if (no_memory) throw std::bad_alloc();
    if (while_opening) std::exchange(while_opening, nullptr)();
    return SessionRef(new Channel(*this, high, participants));
  }
  void complete_next() {
    Transaction* const next = held.front();
    held.pop_front();
    next->completed(Errc::ok, Message(host().pool()));
  }
  bool fail_at_once = false;
  bool no_memory = false;
  std::function<void()> while_opening;  ///< Called once.
  std::deque<Transaction*> held;

 private:
  class Channel final : public Session {
   public:
    using Session::Session;
    void call(Message /*request*/, Transaction& transaction, Duration /*timeout*/) noexcept override {
      auto& channels = static_cast<HeldChannels&>(protocol());
      if (channels.fail_at_once) return transaction.completed(Errc::host_unreachable, {});
      channels.held.push_back(&transaction);
    }
  };
};

/// A pool of at most this many channels.
struct HeldPool {
  explicit HeldPool(unsigned channels)
      : pool(
            high, below, {}, channels, 16, [](Message& /*reply*/) noexcept { return Errc::ok; }, sent) {}
  SimHosts net{1};
  std::optional<Shepherd> inside{std::in_place, net[0].monitor()};
  HeldChannels below{net[0].host()};
  SinkProtocol high{net[0].host()};
  std::uint64_t sent = 0;
  ChannelPool pool;
};

/// A call whose completion runs a function.
struct CallThen final : Transaction {
  explicit CallThen(std::function<void()> function) : then(std::move(function)) {}
  void completed(Errc /*outcome*/, Message /*reply*/) noexcept override { then(); }
  std::function<void()> then;
};

TEST(ChannelPoolTest, a_call_that_was_cancelled_while_its_reply_arrives_is_not_completed_any_more) {
  HeldPool held(1);
  bool cancelled = false;
  struct First final : Transaction {
    explicit First(const bool& gone) : cancelled(gone) {}
    void completed(Errc /*outcome*/, Message /*reply*/) noexcept override {
      EXPECT_FALSE(cancelled);
      ++completions;
    }
    const bool& cancelled;
    int completions = 0;
  } first(cancelled);
  CallThen second([&] {
    held.pool.cancel(first);
    cancelled = true;
    EXPECT_TRUE(held.pool.busy()) << "its owner could let go of it meanwhile";
  });
  held.pool.call(Message(held.net[0].pool()), first, kNoLimit);
  held.pool.call(Message(held.net[0].pool()), second, kNoLimit);
  held.below.fail_at_once = true;  // waiting calls fail as soon as the channel is free
  held.below.complete_next();
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(first.completions, 1);
  EXPECT_FALSE(held.pool.busy());
  EXPECT_EQ(held.sent, 1U) << "the channel has refused the second";
}

TEST(ChannelPoolTest, calls_share_the_channels_that_there_are_while_there_is_no_memory_for_another) {
  HeldPool held(2);
  TestCall refused;
  TestCall first;
  TestCall second;
  held.below.no_memory = true;
  held.pool.call(Message(held.net[0].pool()), refused, kNoLimit);
  EXPECT_EQ(refused.outcome, Errc::limit_reached);
  held.below.no_memory = false;
  held.pool.call(Message(held.net[0].pool()), first, kNoLimit);
  held.below.no_memory = true;
  held.pool.call(Message(held.net[0].pool()), second, kNoLimit);
  EXPECT_FALSE(second.done());
  held.below.complete_next();
  held.below.complete_next();
  EXPECT_EQ(first.outcome, Errc::ok);
  EXPECT_EQ(second.outcome, Errc::ok);
}

TEST(ChannelPoolTest, a_call_that_is_cancelled_while_a_channel_is_opened_for_it_is_not_sent) {
  HeldPool held(2);
  TestCall first;
  TestCall third;
  CallThen second([&] { held.pool.cancel(third); });
  held.pool.call(Message(held.net[0].pool()), first, kNoLimit);
  held.below.no_memory = true;
  held.pool.call(Message(held.net[0].pool()), second, kNoLimit);
  held.pool.call(Message(held.net[0].pool()), third, kNoLimit);
  held.below.no_memory = false;
  // The second call gets the channel of the first, and a channel is opened for the third.
  held.below.while_opening = [&] { held.below.complete_next(); };
  held.below.complete_next();
  EXPECT_TRUE(first.done());
  EXPECT_FALSE(held.below.while_opening) << "no channel was opened";
  EXPECT_FALSE(third.done());
  EXPECT_EQ(held.sent, 2U);
  EXPECT_FALSE(held.pool.busy());
  held.pool.call(Message(held.net[0].pool()), third, kNoLimit);
  held.below.complete_next();
  EXPECT_EQ(third.outcome, Errc::ok);
}

TEST(ChannelPoolTest, a_call_whose_time_is_over_when_a_channel_is_free_is_not_sent_and_the_next_one_is) {
  HeldPool held(1);
  TestCall first;
  TestCall late;
  TestCall next;
  Host& host = held.net[0].host();
  // Due at the same time as the pool's timer, but scheduled earlier.
  Event reply([&held] { held.below.complete_next(); });
  host.events().schedule(reply, 10ms);
  held.pool.call(Message(host.pool()), first, kNoLimit);
  held.pool.call(Message(host.pool()), late, 10ms);
  held.pool.call(Message(host.pool()), next, kNoLimit);
  held.inside.reset();
  held.net.world.run_for(10ms);
  held.inside.emplace(held.net[0].monitor());
  EXPECT_EQ(first.outcome, Errc::ok);
  EXPECT_EQ(late.outcome, Errc::call_aborted);
  EXPECT_EQ(late.completions, 1);
  EXPECT_EQ(held.sent, 2U);
  ASSERT_EQ(held.below.held.size(), 1U);
  held.below.complete_next();
  EXPECT_EQ(next.completions, 1);
  EXPECT_EQ(late.completions, 1);
}

}  // namespace
}  // namespace lrpc::netrpc
