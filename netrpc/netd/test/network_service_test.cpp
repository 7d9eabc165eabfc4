// Calls to other hosts through the network service, over fake calls.
#include "network_service.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "graph_kinds.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/test/fake_calls.h"

namespace lrpc::netd::test {
namespace {

using namespace std::chrono_literals;
using netrpc::Shepherd;

/// Time passes only while a thread waits.
class OneThread final : public netrpc::Engine {
 public:
  explicit OneThread(netrpc::test::ManualClock& clock) : clock_(clock) {}
  bool wait(netrpc::Host& host, const std::function<bool()>& done, netrpc::Time deadline) override {
    while (!done() && host.now() < deadline) {
      clock_.advance(10ms);
      (void)host.events().run_due();
    }
    return done();
  }
  void wake(netrpc::Host& /*host*/) noexcept override {}

 private:
  netrpc::test::ManualClock& clock_;
};

/// The other host answers after a minute.
class SlowCalls : public ::testing::Test {
 protected:
  SlowCalls() {
    calls_.takes = 60s;
    const Shepherd inside(host_.monitor());
    service_.emplace(host_, calls_, std::vector<netrpc::Protocol*>{}, 1);
  }
  ~SlowCalls() override {
    const Shepherd inside(host_.monitor());
    service_.reset();
  }
  Errc call(const netpath::Gone& gone) {
    const std::array<std::byte, 4> request{};  // the fake calls echo it: it begins like the reply of a served command
    std::array<std::byte, 16> reply{};
    std::size_t size = 0;
    return service_->call(0x0a000009, 2, request, reply, size, kNoLimit, gone);
  }

  netrpc::test::ManualClock clock_;
  OneThread engine_{clock_};
  netrpc::Host host_{{}, clock_, engine_};
  netrpc::test::FakeCalls calls_{host_};
  std::optional<NetworkService> service_;
};

TEST_F(SlowCalls, end_soon_after_their_callers_have_gone) {
  const netrpc::Time began = clock_.now();
  EXPECT_EQ(call([&] { return clock_.now() - began > 10s; }), Errc::peer_gone);
  EXPECT_EQ(calls_.cancelled, 1);
  EXPECT_LT(clock_.now() - began, 20s);
}

TEST_F(SlowCalls, are_waited_for_as_long_as_their_callers_are_there) {
  for (const netpath::Gone& gone : {netpath::Gone(), netpath::Gone([] { return false; })})
    EXPECT_EQ(call(gone), Errc::ok);
  EXPECT_EQ(calls_.cancelled, 0);
}

TEST_F(SlowCalls, that_this_host_lacks_something_for_do_not_end_as_if_the_other_were_gone) {
  for (const Errc lacking : {Errc::limit_reached, Errc::system_error}) {
    calls_.refuses = lacking;
    EXPECT_EQ(call({}), Errc::system_error) << describe(lacking);
  }
  calls_.refuses = Errc::host_unreachable;
  EXPECT_EQ(call({}), Errc::host_unreachable);
  calls_.refuses = Errc::ok;
  EXPECT_EQ(call({}), Errc::ok);
}

/// A host whose lrpc-netd has restarted. The new life is heard when the first question to the host fails.
class RestartedHost : public SlowCalls {
 protected:
  static constexpr netpath::HostAddress kHost = 0x0a000009;
  RestartedHost() {
    calls_.takes = 10ms;
    const Shepherd inside(host_.monitor());
    host_.peers().heard({kHost}, 1);
  }
  /// The first answer is a failure, with which `life` is heard. The next answer is an error of another kind.
  Errc agree(netrpc::BootId life) {
    calls_.before_answer = [this, life] {
      const bool first = calls_.timeouts.size() == 1;
      calls_.outcome = first ? Errc::call_failed : Errc::not_permitted;
      host_.peers().heard({kHost}, life);
    };
    netpath::MessageSizes sizes;
    return service_->agree(kHost, sizes, 5s);
  }
};

TEST_F(RestartedHost, is_asked_again_when_an_import_agrees_with_it_on_sizes) {
  EXPECT_EQ(agree(2), Errc::not_permitted);
  ASSERT_EQ(calls_.timeouts.size(), 2U);
  EXPECT_LE(calls_.timeouts[1], calls_.timeouts[0]);
}

TEST_F(RestartedHost, is_not_asked_again_if_it_is_still_in_the_life_that_was_asked) {
  EXPECT_EQ(agree(1), Errc::peer_gone);
  EXPECT_EQ(calls_.timeouts.size(), 1U);
}

/// Serves every command, and counts them.
class CountingService final : public netpath::RemoteService {
 public:
  std::uint16_t serve(const Principal& /*from*/, netpath::Arrival /*arrived*/, std::uint16_t /*command*/,
                      std::span<const std::byte> /*request*/, std::span<std::byte> /*reply*/,
                      std::size_t& reply_size) noexcept override {
    ++served;
    reply_size = 0;
    return 0;
  }
  void peer_rebooted(netpath::HostAddress /*host*/, netpath::Arrival /*last*/) noexcept override {}
  int served = 0;
};

TEST(UnknownHosts, are_refused_until_a_layer_knows_their_addresses) {
  netrpc::test::ManualClock clock;
  netrpc::test::IdleEngine engine;
  netrpc::Host host({}, clock, engine);
  netrpc::test::FakeCalls calls(host);
  CountingService broker;
  std::optional<NetworkService> service;
  {
    const Shepherd inside(host.monitor());
    service.emplace(host, calls, std::vector<netrpc::Protocol*>{}, 2);  // one receiver may serve
    ASSERT_TRUE(service->enable());
  }
  service->serve_with(broker);
  const auto outcome_of_command = [&](netrpc::HostAddress from) {
    const Shepherd inside(host.monitor());
    calls.enabled_for.remote.host = from;
    calls.arrive("command");
    const std::string& reply = calls.replies.back();
    return static_cast<Errc>(netrpc::WireReader(std::as_bytes(std::span(reply)).data()).get<std::uint16_t>());
  };
  EXPECT_EQ(outcome_of_command({}), Errc::limit_reached);
  EXPECT_EQ(broker.served, 0);
  EXPECT_EQ(outcome_of_command({0x0a000009}), Errc::ok);
  EXPECT_EQ(broker.served, 1);
  EXPECT_EQ(service->statistics().refused, 1U);
  service->stop_serving();
  const Shepherd inside(host.monitor());
  service.reset();
}

}  // namespace
}  // namespace lrpc::netd::test
