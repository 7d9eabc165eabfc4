// What the programs of one host take of a TCP is no other host's loss.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "netrpc/devices/tcp/test/tcp_fixture.h"

namespace lrpc::netrpc::test {
namespace {

class TcpShares : public TcpTest {
 protected:
  static HostAddress host(std::uint32_t number) { return {kLoopback.value + number}; }
};

TEST_P(TcpShares, hosts_with_many_connections_leave_some_for_the_next) {
  serve({.port = {}, .address = {}, .peers = 16});
  where_->run([&] {
    std::vector<std::unique_ptr<Connection>> greedy;
    for (std::uint32_t number = 0; number < 3; ++number)
      for (int i = 0; i < 4; ++i) {
        greedy.push_back(std::make_unique<Connection>(0, host(number)));
        (void)greedy.back()->send_at_once(record("in"));
        (void)greedy.back()->receive(6);
      }
    const Connection last(0, host(3));
    (void)last.send_at_once(record("in"));
    EXPECT_EQ(last.receive(6), record("in"));
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, TcpShares, testing::Values(EngineKind::uring, EngineKind::epoll),
                         [](const auto& one) { return one.param == EngineKind::uring ? "uring" : "epoll"; });

}  // namespace
}  // namespace lrpc::netrpc::test
