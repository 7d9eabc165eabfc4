// Accepted connections, readable connections and timers take turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.h"
#include "netrpc/devices/tcp/test/tcp_fixture.h"

namespace lrpc::netrpc::test {
namespace {

using namespace std::chrono_literals;
using testing_lrpc::eventually;

/// Takes this long to handle each new connection.
class Accepter final : public Protocol {
 public:
  Accepter(Host& host, Duration takes) : Protocol(host, "accepter"), takes_(takes) {}
  Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override {
    std::this_thread::sleep_for(takes_);
    ++accepted;
    return Errc::ok;
  }
  void demux(Session& lower, Message /*message*/) noexcept override {
    heard += static_cast<char>('a' + (lower.peer().value - kLoopback.value));
    if (on_heard) on_heard();
  }
  std::int64_t accepted = 0;
  std::string heard;  ///< One letter per message: 'a' for the first host, 'b' for the next one, and so on.
  std::function<void()> on_heard;

 private:
  const Duration takes_;
};

class TcpTurns : public TcpTest {
 protected:
  /// Starts a server with an Accepter above its TCP.
  Accepter& serve_accepter(const TcpOptions& options, Duration takes = {}) {
    return serve_above<Accepter>(options, 1, takes);
  }
  /// Runs `begin` inside the monitor and then a timer again and again, until `value` is `last`. Returns by how much
  /// `value` grew at most between two turns of the timer.
  std::int64_t largest_step(const std::function<void()>& begin, const std::function<std::int64_t()>& value,
                            std::int64_t last) {
    std::int64_t seen = 0;
    std::int64_t most = 0;
    Event timer([&] {
      const std::int64_t now = value();
      most = std::max(most, now - std::exchange(seen, now));
      (*server_)->events().schedule(timer, Duration(0));
    });
    server_->inside([&] {
      (*server_)->events().schedule(timer, Duration(0));
      begin();
    });
    EXPECT_TRUE(holds_inside([&] { return seen == last; }));
    server_->inside([&] { (*server_)->events().cancel(timer); });
    return most;
  }
  void connect(int connections) {
    for (int i = 0; i < connections; ++i) connections_.push_back(std::make_unique<Connection>());
  }
  /// How many of `connections` that come together, after a pause, are accepted at most before a timer has its turn. The
  /// timer takes `others` after the first 16.
  std::int64_t most_accepted_at_once(int connections, Duration takes, Duration others) {
    const Accepter& accepter = serve_accepter({.port = {}, .address = {}, .peers = 1024}, takes);
    std::this_thread::sleep_for(60ms);
    const auto accepted = [&] {
      if (accepter.accepted == kAccepted) std::this_thread::sleep_for(others);
      return accepter.accepted;
    };
    const std::int64_t most = largest_step([&] { connect(connections); }, accepted, connections);
    connections_.clear();
    server_.reset();
    return most;
  }
  /// Makes a connection from the host of each letter, and waits until all are accepted.
  void connect_hosts(const Accepter& accepter, const std::string& letters) {
    where_->run([&] {
      for (const char letter : letters) {
        const HostAddress from{kLoopback.value + static_cast<std::uint32_t>(letter - 'a')};
        connections_.push_back(std::make_unique<Connection>(0, from));
      }
    });
    EXPECT_TRUE(holds_inside([&] { return accepter.accepted == static_cast<std::int64_t>(letters.size()); }));
  }
  bool holds_inside(const std::function<bool()>& condition) {
    return eventually([&] {
      bool holds = false;
      server_->inside([&] { holds = condition(); });
      return holds;
    });
  }
  std::vector<std::unique_ptr<Connection>> connections_;
  static constexpr std::int64_t kAccepted = 16;  ///< The least number that is accepted in one turn.
};

TEST_P(TcpTurns, newcomers_have_as_much_time_as_others_have_taken) {
  std::int64_t most = 0;
  for (int tries = 0; tries < 5 && most <= kAccepted; ++tries)  // the machine may be busy
    most = most_accepted_at_once(100, Duration(0), 60ms);
  EXPECT_GT(most, kAccepted);
}

TEST_P(TcpTurns, newcomers_have_no_time_in_which_nobody_came) {
  std::int64_t most = kAccepted + 1;
  for (int tries = 0; tries < 5 && most > kAccepted; ++tries)  // a stall of the machine may count as others' time
    most = most_accepted_at_once(40, 2ms, Duration(0));
  EXPECT_EQ(most, kAccepted);
}

TEST_P(TcpTurns, newcomers_do_not_keep_others_waiting_for_long) {
  EXPECT_EQ(most_accepted_at_once(40, 5ms, 60ms), kAccepted);
}

TEST_P(TcpTurns, many_connections_that_end_together_do_not_keep_others_waiting_for_long) {
  const Accepter& accepter = serve_accepter({.port = {}, .address = {}, .peers = 1024, .idle = 200ms});
  const auto ended = [&] {
    return accepter.accepted - static_cast<std::int64_t>(asked<control::Statistics>(*tcp_).sessions);
  };
  EXPECT_LE(largest_step([&] { connect(100); }, ended, 100), 32);
}

/// Each turn checks only some of the connections, in order.
TEST_P(TcpTurns, idle_connections_end_in_the_order_in_which_they_came) {
  // All are accepted long before the first one reaches the idle limit.
  const Accepter& accepter = serve_accepter({.port = {}, .address = {}, .peers = 1024, .idle = 1s});
  std::int64_t checked = 0;
  bool in_order = true;
  const auto ended = [&] {
    const std::int64_t now = accepter.accepted - static_cast<std::int64_t>(asked<control::Statistics>(*tcp_).sessions);
    for (; checked < now && in_order; ++checked)
      in_order = eventually([&] { return connections_[static_cast<std::size_t>(checked)]->closed(); });
    return now;
  };
  largest_step([&] { connect(100); }, ended, 100);
  EXPECT_TRUE(in_order) << "the one that came as number " << checked << " has been passed over";
}

TEST_P(TcpTurns, are_taken_by_hosts_however_many_connections_they_have) {
  const Accepter& accepter = serve_accepter({.port = {}, .address = {}, .peers = 1024});
  connect_hosts(accepter, std::string(200, 'a') + "bccc");
  server_->inside([&] {
    for (const auto& connection : connections_) connection->send(record("x"));
    EXPECT_TRUE(
        eventually([&] { return std::ranges::all_of(connections_, [](const auto& one) { return one->arrived(); }); }));
  });
  EXPECT_TRUE(holds_inside([&] { return accepter.heard.size() == connections_.size(); }));
  EXPECT_EQ(accepter.heard, "abcacac" + std::string(197, 'a'));
}

TEST_P(TcpTurns, come_for_hosts_that_come_late) {
  Accepter& accepter = serve_accepter({.port = {}, .address = {}, .peers = 1024});
  connect_hosts(accepter, std::string(100, 'a') + "b");
  accepter.on_heard = [&] {
    if (accepter.heard.size() == 3) connections_.back()->send(record("x"));
    std::this_thread::sleep_for(1ms);
  };
  server_->inside([&] {
    for (std::size_t i = 0; i + 1 < connections_.size(); ++i) connections_[i]->send(record("x"));
  });
  EXPECT_TRUE(holds_inside([&] { return accepter.heard.size() == connections_.size(); }));
  EXPECT_LE(accepter.heard.find('b'), 50U) << accepter.heard;  // the loopback may be slow, too
}

INSTANTIATE_TEST_SUITE_P(Engines, TcpTurns, testing::Values(EngineKind::uring, EngineKind::epoll),
                         [](const auto& one) { return one.param == EngineKind::uring ? "uring" : "epoll"; });

}  // namespace
}  // namespace lrpc::netrpc::test
