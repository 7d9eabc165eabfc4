// Programs of one host must not take other hosts' shares of TCP.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "eventually.h"
#include "netrpc/devices/tcp/test/tcp_fixture.h"

namespace lrpc::netrpc::test {
namespace {

/// Answers a request of n bytes until n of its messages wait in buffers, besides what the kernel takes.
class Answerer final : public Protocol {
 public:
  explicit Answerer(Host& host) : Protocol(host, "answerer") {}
  Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override { return Errc::ok; }
  void demux(Session& lower, Message request) noexcept override {
    const std::vector<std::byte> answer(18'000);
    const std::uint64_t enough = host().pool().in_use() + request.size();
    Errc outcome = Errc::ok;
    while (outcome == Errc::ok && host().pool().in_use() < enough)
      outcome = lower.push(Message::copy_of(host().pool(), answer));
    ++(outcome == Errc::ok ? answered : refused);
  }
  int answered = 0;
  int refused = 0;
};

class TcpShares : public TcpTest {
 protected:
  static HostAddress host(std::uint32_t number) { return {kLoopback.value + number}; }
  /// Whether a program of this host is served, perhaps only after the ends of other connections were noticed.
  static bool gets_in(HostAddress from) {
    return testing_lrpc::eventually([&] {
      const Connection program(0, from);
      (void)program.send_at_once(record("in"));
      return program.receive(6) == record("in");
    });
  }
  /// Opens server sessions to `count` peers that do not exist. The caller is inside the monitor.
  std::vector<SessionRef> open_many(std::uint16_t count) {
    std::vector<SessionRef> opened;
    for (std::uint16_t port = 1; port <= count; ++port) {
      ParticipantSet to{kTcpUser, {}, {}};
      to.remote.host = kLoopback;
      to.remote.port = port;
      auto made = tcp_->open(*echo_, to);
      EXPECT_TRUE(made);
      if (made) opened.push_back(*made);
    }
    return opened;
  }
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

TEST_P(TcpShares, connections_that_have_ended_or_have_become_this_hosts_own_give_their_places_back) {
  serve({.port = {}, .address = {}, .peers = 4});
  where_->run([&] {
    const Connection own(0, host(0));
    (void)own.send_at_once(record("in"));
    EXPECT_EQ(own.receive(6), record("in"));
    server_->inside([&] { EXPECT_TRUE(tcp_->open(*echo_, {kTcpUser, {}, echo_->announced.back().remote})); });
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(gets_in(host(0)));
  });
}

TEST_P(TcpShares, sessions_that_this_host_uses_take_nothing_else_from_others) {
  serve({.port = {}, .address = {}, .peers = 8});
  std::vector<SessionRef> used;
  server_->inside([&] { used = open_many(6); });
  where_->run([&] { EXPECT_TRUE(gets_in(host(0))); });
  server_->inside([&] { used.clear(); });
}

TEST_P(TcpShares, a_newcomer_costs_a_look_at_some_sessions_however_many_there_are) {
  serve({.port = {}, .address = {}, .peers = 1024});
  server_->inside([&] { (void)open_many(1024); });
  where_->run([&] { EXPECT_TRUE(gets_in(host(0))); });
  EXPECT_GE(statistics().sessions, 1024U - 2 * 256U);
}

/// To make room for a session that this host opens, TCP examines 256 of those that it has opened: it first drops unused
/// ones without a connection, and if that does not help, unused ones with a connection.
TEST_P(TcpShares, sessions_with_a_connection_that_nobody_uses_any_more_make_room_before_others_that_are_used) {
  constexpr std::uint16_t kHalf = 256;
  serve({.port = {}, .address = {}, .peers = 2 * kHalf});
  UniqueFd listener;
  where_->run([&] {
    listener = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in any = socket_address({}, kPort + 1);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    EXPECT_EQ(::listen(listener.get(), SOMAXCONN), 0);
  });
  std::vector<SessionRef> connected;
  std::vector<SessionRef> used;
  server_->inside([&] {
    for (std::uint32_t number = 0; number < kHalf; ++number) {
      ParticipantSet to{kTcpUser, {}, {}};
      to.remote.host = host(number);
      to.remote.port = kPort + 1;
      auto made = tcp_->open(*echo_, to);
      ASSERT_TRUE(made);
      connected.push_back(*made);
      EXPECT_EQ(connected.back()->push(Message::make((*server_)->pool(), 32)), Errc::ok);
    }
    used = open_many(kHalf);
  });
  EXPECT_TRUE(testing_lrpc::eventually([&] { return (*server_)->pool().in_use() == 0; })) << "all has been sent";
  server_->inside([&] {
    connected.clear();
    ParticipantSet to{kTcpUser, {}, {}};
    to.remote.host = kLoopback;
    to.remote.port = kHalf + 1;
    EXPECT_TRUE(tcp_->open(*echo_, to));
    used.clear();
  });
}

/// At most 819 buffers may wait for all hosts together. The clients send requests and do not read the answers.
TEST_P(TcpShares, hosts_that_do_not_read_their_answers_leave_some_room_for_the_next) {
  constexpr std::uint32_t kGreedy = 3;
  constexpr int kConnections = 3;
  Answerer* answerer = nullptr;
  server_ = std::make_unique<RealHost>(*where_, GetParam(), "server");
  server_->inside([&] {
    tcp_ = &server_->keep(make_tcp(**server_, "tcp", {.port = kPort, .address = {}, .longest = TcpOptions::kLongest}));
    answerer = &server_->keep(std::make_unique<Answerer>(**server_));
    ASSERT_TRUE(tcp_->open_enable(*answerer, {kTcpUser, {}, {}}));
  });
  server_->start(2);
  where_->run([&] {
    std::vector<std::unique_ptr<Connection>> all;
    const auto ask = [&](std::uint32_t number, std::size_t waiting) {
      all.push_back(std::make_unique<Connection>(8192, host(number)));
      all.back()->send(record(std::string(waiting, 'x')));
      EXPECT_EQ(all.back()->receive(kRecordMark).size(), kRecordMark);
    };
    for (std::uint32_t number = 0; number < kGreedy; ++number)
      for (int i = 0; i < kConnections; ++i) ask(number, 150);
    int refused = 0;
    server_->inside([&] {
      refused = answerer->refused;
      EXPECT_GT(answerer->answered, 0);
    });
    EXPECT_GT(refused, 0);
    ask(kGreedy, 100);
    server_->inside([&] { EXPECT_EQ(answerer->refused, refused); });
    all.clear();  // now no message waits any more
    EXPECT_TRUE(testing_lrpc::eventually([&] { return statistics().sessions == 0; }));
    ask(0, 150);
    server_->inside([&] { EXPECT_EQ(answerer->refused, refused); });
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, TcpShares, testing::Values(EngineKind::uring, EngineKind::epoll),
                         [](const auto& one) { return one.param == EngineKind::uring ? "uring" : "epoll"; });

}  // namespace
}  // namespace lrpc::netrpc::test
