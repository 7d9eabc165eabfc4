// A polling thread whose messages all come from one socket receives from that socket directly, bypassing its ring.
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "engines.h"
#include "eventually.h"

namespace lrpc::netrpc::test {
namespace {

class BusySockets : public Engines {};

/// Whether the engine's thread has come to bypass its ring during round trips.
bool receives_directly(const UringEngine& engine, const std::function<bool()>& round_trip) {
  const std::uint64_t before = engine.statistics().direct;
  return testing_lrpc::eventually([&] {
    for (int i = 0; i < 32; ++i)
      if (!round_trip()) return false;
    return engine.statistics().direct != before;
  });
}

TEST_P(BusySockets, are_received_from_past_the_ring) {
  b_->start(2);
  EXPECT_TRUE(receives_directly(a_->engine(), [this] { return round_trip(); }));
}

TEST_P(BusySockets, do_not_keep_others_from_being_heard) {
  Talker* quiet = nullptr;
  SessionRef to_quiet;
  a_->inside([&] {
    quiet = &a_->keep(std::make_unique<Talker>(**a_, false));
    ASSERT_TRUE(device_a_->open_enable(*quiet, {kEcho + 1, {}, {}}));
  });
  b_->inside([&] {
    ParticipantSet participants{kEcho + 1, {}, {}};
    participants.remote.host = kA;
    auto opened = device_b_->open(*server_, participants);
    ASSERT_TRUE(opened);
    to_quiet = opened.value();
  });
  b_->start(2);
  // The message was heard although the thread never left the busy socket: each round trip was received directly.
  EXPECT_TRUE(testing_lrpc::eventually([&] {
    if (!receives_directly(a_->engine(), [this] { return round_trip(); })) return false;
    const std::uint64_t heard = quiet->received;
    const std::uint64_t direct = a_->engine().statistics().direct;
    b_->inside([&] { EXPECT_EQ(to_quiet->push(Message::make((*b_)->pool(), 32)), Errc::ok); });
    std::uint64_t trips = 0;
    while (quiet->received == heard && trips < 10'000) {
      if (!round_trip()) return false;
      ++trips;
    }
    return trips != 10'000 && a_->engine().statistics().direct - direct == trips;
  }));
  b_->inside([&] { to_quiet = {}; });
}

TEST_P(BusySockets, take_their_descriptors_along_when_they_go) {
  b_->start(2);
  std::ptrdiff_t before = 0;
  for (int i = 0; i < 5; ++i) {
    UdpOptions options;
    options.ports.peers = 30000 + 100 * static_cast<std::uint32_t>(i);  // the previous sockets may be closed later
    std::unique_ptr<Protocol> there;
    std::unique_ptr<Protocol> here;
    std::unique_ptr<Talker> echo;
    std::unique_ptr<Talker> talker;
    SessionRef busy;
    b_->inside([&] {
      there = make_udp(**b_, "another", options).value();
      echo = std::make_unique<Talker>(**b_, true);
      ASSERT_TRUE(there->open_enable(*echo, {kEcho, {}, {}}));
    });
    a_->inside([&] {
      here = make_udp(**a_, "another", options).value();
      talker = std::make_unique<Talker>(**a_, false);
      ParticipantSet participants{kEcho, {}, {}};
      participants.remote.host = kB;
      busy = here->open(*talker, participants).value();
    });
    EXPECT_TRUE(receives_directly(a_->engine(), [&] {
      const Shepherd inside((*a_)->monitor());
      const std::uint64_t seen = talker->received;
      return busy->push(Message::make((*a_)->pool(), 32)) == Errc::ok &&
             a_->engine().wait(
                 **a_, [&] { return talker->received > seen; }, Time::max());
    }));
    a_->inside([&] {
      busy = {};
      here.reset();
      talker.reset();
    });
    b_->inside([&] {
      there.reset();
      echo.reset();
    });
    ASSERT_TRUE(round_trip());
    const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
    if (i == 1) before = descriptors() + 1;  // now each thread has its ring; perhaps one of b's two does not
    if (i > 1) {
      EXPECT_TRUE(testing_lrpc::eventually([&] { return round_trip() && descriptors() <= before; }));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, BusySockets, testing::Values(EngineKind::uring), [](const auto&) { return "uring"; });

}  // namespace
}  // namespace lrpc::netrpc::test
