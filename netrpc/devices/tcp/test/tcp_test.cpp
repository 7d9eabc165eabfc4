// What TCP does with the connections that programs make, and with those that it makes itself.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "eventually.h"
#include "netrpc/devices/tcp/test/tcp_fixture.h"

namespace lrpc::netrpc::test {
namespace {

using namespace std::chrono_literals;
using testing_lrpc::eventually;

TEST_P(TcpTest, messages_of_any_size_come_whole) {
  serve();
  open();
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
  for (const std::size_t size : {0U, 1U, 1000U, 20'000U, 65'536U, 131'072U}) {
    EXPECT_EQ(push(size), Errc::ok);
    bytes += size;
    EXPECT_TRUE(receives(++messages, bytes)) << size;
  }
  EXPECT_EQ(push(131'073), Errc::message_too_long);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(push(2000), Errc::ok);
  EXPECT_TRUE(receives(messages + 100, bytes + 200'000));
  EXPECT_EQ(statistics().sessions, 1U);
}

TEST_P(TcpTest, records_are_cut_as_the_network_likes) {
  serve();
  where_->run([&] {
    const Connection program;
    const std::string both = record("first") + record("second");
    for (const char one : both) program.send(std::string(1, one));
    EXPECT_EQ(program.receive(both.size()), both);
    program.send(both + both);
    EXPECT_EQ(program.receive(2 * both.size()), both + both);
    program.send(std::string("\0\0\0\2ha", 6) + std::string("\x80\0\0\1t", 5));
    EXPECT_EQ(program.receive(7), record("hat"));
  });
}

TEST_P(TcpTest, who_sends_no_records_is_disconnected_and_nobody_else_is) {
  serve({.port = {}, .address = {}, .longest = 100});
  where_->run([&] {
    const Connection good;
    for (const std::string& wrong :
         {std::string("\x80\0\0\x65", 4), std::string("GET / HTTP/1.1\r\n"), std::string("\0\0\0\0", 4)}) {
      const Connection bad;
      bad.send(wrong);
      EXPECT_EQ(bad.receive(1), "");
    }
    good.send(record("good"));
    EXPECT_EQ(good.receive(8), record("good"));
  });
  EXPECT_EQ(statistics().malformed, 3U);
}

TEST_P(TcpTest, a_session_connects_again_with_the_next_message) {
  EXPECT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(push(1), Errc::ok);  // there is no server: a caller that waits for a reply retransmits
  EXPECT_TRUE(eventually([&] { return client_->asked<control::Statistics>(*calls_).failed == 1; }));
  for (int lives = 1; lives <= 2; ++lives) {
    serve();
    EXPECT_TRUE(eventually([&] {
      EXPECT_EQ(push(3), Errc::ok);
      bool answered = false;
      client_->inside([&] { answered = talker_->received > 0; });
      return answered;
    }));
    server_.reset();
    client_->inside([&] { talker_->received = 0; });
  }
}

/// As when a router has forgotten the connection: no packet reports its end.
TEST_P(TcpTest, a_connection_whose_packets_get_lost_ends_though_more_is_sent_over_it) {
  if (const auto why = why_no_nftables()) GTEST_SKIP() << *why;
  serve();
  client_->inside(
      [&] { calls_ = &client_->keep(make_tcp(**client_, "quick", {.port = {}, .address = {}, .idle = 1s})); });
  open();
  std::uint64_t before = 0;
  const auto answered = [&] {
    EXPECT_EQ(push(1), Errc::ok);
    std::uint64_t received = 0;
    client_->inside([&] { received = talker_->received; });
    return received > before;
  };
  EXPECT_TRUE(eventually(answered));  // with so short a limit, an idle connection may end in between
  client_->inside([&] { before = talker_->received; });
  std::string port;
  server_->inside([&] { port = std::to_string(echo_->announced.back().remote.port); });
  where_->nft("add table ip lost");
  where_->nft("add chain ip lost in { type filter hook input priority 0 ; }");
  for (const char* const end : {"sport ", "dport "}) where_->nft("add rule ip lost in tcp " + (end + port) + " drop");
  EXPECT_TRUE(eventually(answered));
}

TEST_P(TcpTest, a_host_has_a_quarter_of_the_connections_at_most) {
  serve({.port = {}, .address = {}, .peers = 8});
  where_->run([&] {
    const Connection one;
    const Connection other;
    for (const Connection* const program : {&one, &other}) {
      program->send(record("in"));
      EXPECT_EQ(program->receive(6), record("in"));
    }
    const Connection third;
    EXPECT_EQ(third.receive(1), "");
  });
  EXPECT_EQ(statistics().refused, 1U);
}

TEST_P(TcpTest, a_connection_on_which_nothing_moves_ends) {
  serve({.port = {}, .address = {}, .idle = std::chrono::milliseconds(20)});
  where_->run([&] {
    const Connection program;
    EXPECT_EQ(program.receive(1), "");
  });
  EXPECT_TRUE(eventually([&] { return statistics().sessions == 0; }));
}

TEST_P(TcpTest, who_does_not_read_is_not_listened_to_and_ends) {
  serve({.port = {}, .address = {}, .idle = std::chrono::milliseconds(300)});
  const auto buffers = [&] { return (*server_)->pool().in_use(); };
  where_->run([&] {
    std::optional<Connection> program(8192);  // a small buffer, soon full
    // Send until the sockets and this host take no more; each short message takes a buffer of 512 bytes.
    std::uint64_t most = 0;
    std::string rest;
    bool heard = false;
    EXPECT_TRUE(eventually([&] {
      if (!heard && program->ended()) {  // on a busy machine it may exceed the idle limit before it is heard
        program.emplace(8192);
        rest.clear();
      }
      for (int i = 0; i < 1000 && rest.empty(); ++i) {
        rest = record("some bytes");
        rest.erase(0, program->send_at_once(rest));
      }
      rest.erase(0, program->send_at_once(rest));
      server_->inside([&] {
        most = std::max(most, buffers());
        heard = echo_->received != 0;
      });
      return heard && statistics().sessions == 0;
    }));
    EXPECT_LT(most, 4 * 131'072 / 512 + 100);
    EXPECT_EQ(echo_->failed, 0U);
    // On a busy machine a connection may exceed the idle limit: then try the next one.
    EXPECT_TRUE(eventually([&] {
      const Connection other;
      other.send(record("well"));
      return other.receive(8) == record("well");
    }));
  });
  EXPECT_TRUE(eventually([&] {
    bool none = false;
    server_->inside([&] { none = buffers() < 10; });
    return none;
  }));
}

TEST_P(TcpTest, who_sends_what_there_is_no_buffer_for_is_disconnected) {
  serve();
  where_->run([&] {
    const Connection program;
    program.send(record("first"));
    EXPECT_EQ(program.receive(9), record("first"));
    std::vector<Buffer*> all;
    server_->inside([&] {
      for (const std::uint32_t size : {BufferPool::kSizes[2], BufferPool::kSizes[1], BufferPool::kSizes[0]})
        while (Buffer* const taken = (*server_)->pool().take(size)) all.push_back(taken);
    });
    program.send(record("second"));
    EXPECT_EQ(program.receive(1), "");
    for (Buffer* const taken : all) BufferPool::release(*taken);
    const Connection other;
    other.send(record("third"));
    EXPECT_EQ(other.receive(9), record("third"));
  });
}

TEST_P(TcpTest, who_sends_without_end_does_not_hold_up_timers) {
  serve();
  std::atomic<int> fired = 0;
  Event timer([&] {
    ++fired;
    (*server_)->events().schedule(timer, std::chrono::milliseconds(1));
  });
  server_->inside([&] { (*server_)->events().schedule(timer, std::chrono::milliseconds(1)); });
  where_->run([&] {
    const Connection one;
    const Connection other;
    std::string many;
    for (int i = 0; i < 100; ++i) many += record(std::string(200, 'x'));
    const std::array<const Connection*, 2> both{&one, &other};
    std::atomic<bool> over = false;
    std::vector<std::thread> threads;
    for (const Connection* const program : both) {
      threads.emplace_back([&, program] {
        while (!over) program->send(many);
        program->shut_down();
      });
      threads.emplace_back([program] {
        while (!program->receive(65'536).empty()) {
        }
      });
    }
    const int before = fired;
    EXPECT_TRUE(eventually([&] { return fired >= before + 20; }));
    over = true;
    for (std::thread& thread : threads) thread.join();
  });
  server_->inside([&] { (*server_)->events().cancel(timer); });
}

TEST_P(TcpTest, who_sends_no_more_still_gets_what_it_waits_for) {
  serve();
  where_->run([&] {
    const Connection program;
    std::string all;
    for (int i = 0; i < 50; ++i) all += record(std::string(100'000, 'y'));
    std::thread sends([&] {
      program.send(all);
      program.shut_down();
    });
    EXPECT_EQ(program.receive(all.size() + 1), all);  // the whole reply, and then the end of the stream
    sends.join();
  });
  EXPECT_TRUE(eventually([&] { return statistics().sessions == 0; }));
}

TEST_P(TcpTest, sessions_that_nobody_uses_keep_nobody_out) {
  serve({.port = {}, .address = {}, .peers = 8});
  server_->inside([&] {
    for (std::uint16_t port = 1; port <= 8; ++port) {
      ParticipantSet to{kTcpUser, {}, {}};
      to.remote.host = kLoopback;
      to.remote.port = port;
      EXPECT_TRUE(tcp_->open(*echo_, to));
    }
  });
  EXPECT_EQ(statistics().sessions, 8U);
  where_->run([&] {
    const Connection program;
    program.send(record("in"));
    EXPECT_EQ(program.receive(6), record("in"));
  });
}

TEST_P(TcpTest, options_that_no_connection_could_live_with_are_refused) {
  client_->inside([&] {
    for (const TcpOptions& wrong :
         {TcpOptions{.port = {}, .address = {}, .peers = 0}, TcpOptions{.port = {}, .address = {}, .peers = 1 << 20},
          TcpOptions{.port = {}, .address = {}, .longest = 0},
          TcpOptions{.port = {}, .address = {}, .idle = Duration(0)}}) {
      const auto made = make_tcp(**client_, "tcp", wrong);
      EXPECT_EQ(made.code(), Errc::invalid_argument);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, TcpTest, testing::Values(EngineKind::uring, EngineKind::epoll),
                         [](const auto& one) { return one.param == EngineKind::uring ? "uring" : "epoll"; });

}  // namespace
}  // namespace lrpc::netrpc::test
