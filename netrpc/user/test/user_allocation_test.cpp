// In the steady state the graph allocates nothing for a message to a user process, nor for one from it.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>

#include "lrpc/netrpc/user/user_object.h"
#include "netrpc/sim/test/counted_allocations.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netuser {
namespace {

using netrpc::Shepherd;
using namespace std::chrono_literals;

class Counter final : public netrpc::Protocol {
 public:
  explicit Counter(netrpc::Host& host) : Protocol(host, "counter") {}
  void demux(netrpc::Session& /*lower*/, netrpc::Message /*message*/) noexcept override { ++received; }
  int received = 0;
};

TEST(UserAllocations, there_are_none_in_the_steady_state) {
  constexpr netrpc::ProtocolNumber kNumber{245};
  netrpc::SimHosts net(2);
  UserOptions options;
  options.name = "user";
  options.number = kNumber;
  UserObject* user = nullptr;
  {
    const Shepherd inside(net[1].monitor());
    auto made = UserObject::make({net[1].host(), "user", {&net[1].ip()}, {}}, std::move(options));
    ASSERT_TRUE(made) << made.error().message();
    user = made->get();
    net[1].own(std::shared_ptr<UserObject>(std::move(*made)));
    ASSERT_TRUE(user->attach());
    user->want(true);
  }
  auto& counter = net[0].add<Counter>();
  netrpc::SessionRef session;
  {
    const Shepherd inside(net[0].monitor());
    session = *net[0].ip().open(counter, net.to(1, kNumber));
  }
  const auto messages = [&](int count) {
    constexpr std::array<std::byte, 1> kAnswer{};
    for (int i = 0; i < count; ++i) {
      for (int several = 0; several < 3; ++several) {  // messages that wait at the same time
        const Shepherd inside(net[0].monitor());
        EXPECT_EQ(session->push(net.message(0, "x")), Errc::ok);
      }
      net.world.run_for(100us);
      const Shepherd inside(net[1].monitor());
      for (Upcall upcall; user->take(upcall);) EXPECT_EQ(user->push(upcall.session, kAnswer), Errc::ok);
    }
    net.world.run_for(100us);
  };
  messages(1000);
  const std::uint64_t before = netrpc::allocations_so_far();
  messages(1000);
  EXPECT_EQ(netrpc::allocations_so_far(), before);
  EXPECT_EQ(counter.received, 6000);
}

}  // namespace
}  // namespace lrpc::netuser
