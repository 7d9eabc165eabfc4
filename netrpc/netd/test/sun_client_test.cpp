// The Sun RPC client of lrpc-netd over fake calls: what it refuses, and how much of the host's memory it takes.
#include "sun/sun_client.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "graph_kinds.h"
#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/stubgen/layout/compile.h"
#include "netrpc/test/fake_calls.h"

namespace lrpc::netd::test {
namespace {

using namespace std::chrono_literals;
using netpath::ForeignBinding;

constexpr uid_t kUser = 1000;
constexpr uid_t kOther = 1001;
constexpr uid_t kThird = 1002;
/// Buffer space of a fake call's request: one small buffer.
constexpr std::size_t kRequest = netrpc::BufferPool::kSizes[0];

/// Time passes only while a thread waits. The next function of `meanwhile` then runs outside the monitor, and the clock
/// advances until the thread's condition holds.
class OneThread final : public netrpc::Engine {
 public:
  explicit OneThread(netrpc::test::ManualClock& clock) : clock_(clock) {}
  bool wait(netrpc::Host& host, const std::function<bool()>& done, netrpc::Time deadline) override {
    if (!meanwhile.empty()) {
      const auto next = std::move(meanwhile.front());
      meanwhile.pop_front();
      outside(host, next);
    }
    while (!done() && host.now() < deadline) {
      clock_.advance(1ms);
      (void)host.events().run_due();
    }
    return done();
  }
  void wake(netrpc::Host& /*host*/) noexcept override {}
  std::deque<std::function<void()>> meanwhile;

 private:
  netrpc::test::ManualClock& clock_;
};

/// All clients' share of the buffers is four requests of the fake calls; the share of a user that is alone is two.
class SunClients : public ::testing::Test {
 protected:
  SunClients() {
    netrpc::HostOptions options;
    options.buffer_limit = 8 * 4 * kRequest;
    options.short_of_memory = [this] { return short_of_memory_; };
    host_.emplace(options, clock_, engine_);
    calls_.emplace(*host_);
    client_.emplace(*host_, SunClient::Below{&*calls_, nullptr},
                    std::vector<SunImport>{{"counter", "there", 0x20000001, 0, 7, netrpc::SunTransport::udp},
                                           {"anywhere", "there", 0x20000001, 0, 0, netrpc::SunTransport::udp}});
  }
  /// `name`: rpcbind knows the port of "anywhere".
  Result<std::unique_ptr<ForeignBinding>> bind(uid_t user, std::string name = "counter") {
    stubgen::Diagnostics diagnostics;
    const auto interface = stubgen::compile(
        {"t", "interface Counter version 1.0 { procedure Same(a: int32) -> (b: int32); }"}, diagnostics);
    netpath::ForeignServers::Wanted wanted{std::move(name), "there", 0x0a000009, user, interface->canonical};
    return client_->bind(wanted);
  }
  /// The fake calls echo the arguments. Errc::ok: they came back.
  static Errc call(ForeignBinding& binding) {
    const std::uint32_t sent = 42;
    std::uint32_t got = 0;
    const auto returned =
        binding.call(nullptr, 0, std::as_bytes(std::span(&sent, 1)), 0ms, std::as_writable_bytes(std::span(&got, 1)));
    const auto status = static_cast<std::uint16_t>(returned.status & ~shim::call_status::kTold);
    if (status == server::failed(Errc::limit_reached)) return Errc::limit_reached;
    return returned.status == 0 && returned.size == sizeof got && got == sent ? Errc::ok : Errc::call_failed;
  }

  netrpc::test::ManualClock clock_;
  OneThread engine_{clock_};
  bool short_of_memory_ = false;
  std::optional<netrpc::Host> host_;
  std::optional<netrpc::test::FakeCalls> calls_;
  std::optional<SunClient> client_;
};

TEST_F(SunClients, import_and_call_nothing_while_memory_is_short) {
  const auto binding = bind(kUser);
  ASSERT_TRUE(binding) << binding.error().message();
  EXPECT_EQ(call(**binding), Errc::ok);
  const std::size_t sent = calls_->timeouts.size();
  short_of_memory_ = true;
  EXPECT_EQ(call(**binding), Errc::limit_reached);
  EXPECT_EQ(bind(kUser).code(), Errc::limit_reached);
  EXPECT_EQ(calls_->timeouts.size(), sent) << "nothing is sent";
  short_of_memory_ = false;
  EXPECT_EQ(call(**binding), Errc::ok);
}

TEST_F(SunClients, of_one_user_have_half_of_the_share_of_buffers_and_leave_the_rest_to_others) {
  const auto mine = bind(kUser).value();
  const auto others = bind(kOther).value();
  const auto third = bind(kThird).value();
  calls_->takes = 1s;
  std::vector<Errc> outcomes(6, Errc::call_failed);
  // Each of these runs while the call before it waits.
  engine_.meanwhile = {
      [&] { outcomes[1] = call(*mine); },
      [&] {
        outcomes[2] = call(*mine);  // is not sent, so it does not wait
        outcomes[3] = call(*others);
      },
      [&] {
        outcomes[4] = call(*others);  // refused: beside the first user, this user's share is one
        outcomes[5] = call(*third);
      },
  };
  outcomes[0] = call(*mine);
  EXPECT_TRUE(engine_.meanwhile.empty());
  EXPECT_EQ(outcomes,
            (std::vector<Errc>{Errc::ok, Errc::ok, Errc::limit_reached, Errc::ok, Errc::limit_reached, Errc::ok}));
  EXPECT_EQ(call(*mine), Errc::ok) << "what has ended takes no buffers";
  EXPECT_EQ(call(*third), Errc::ok);
}

TEST_F(SunClients, fail_with_limit_reached_when_the_host_has_no_buffer) {
  const auto mine = bind(kUser).value();
  std::vector<netrpc::Message> all;
  {
    const netrpc::Shepherd inside(host_->monitor());
    for (;;) {
      netrpc::Message one = netrpc::Message::make(host_->pool(), 1);
      if (!one.allocated()) break;
      all.push_back(std::move(one));
    }
  }
  EXPECT_EQ(call(*mine), Errc::limit_reached);
  const auto asked = bind(kUser, "anywhere");
  EXPECT_EQ(asked.code(), Errc::limit_reached) << asked.error().message();
  {
    const netrpc::Shepherd inside(host_->monitor());
    all.clear();
  }
  EXPECT_EQ(call(*mine), Errc::ok);
}

}  // namespace
}  // namespace lrpc::netd::test
