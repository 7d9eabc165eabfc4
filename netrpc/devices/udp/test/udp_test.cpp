// UDP over the loopback of a namespace: programs of one host, each at its own port.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

#include "eventually.h"
#include "netrpc/devices/device/internet_address.h"
#include "netrpc/devices/udp/udp.h"
#include "netrpc/protocols/fragment/fragment.h"
#include "netrpc/protocols/fragment/header.h"
#include "netrpc/test_support/real_host.h"
#include "receive_patiently.h"

namespace lrpc::netrpc::test {
namespace {

using testing_lrpc::eventually;

constexpr ProtocolNumber kNumber = protocol_numbers::kFirstOfTests;
constexpr HostAddress kHere{0x7f000001};

/// A program that knows nothing of lrpc: a socket at a port that the kernel has chosen.
class Program {
 public:
  /// `port` 0: any.
  explicit Program(HostAddress host = kHere, std::uint16_t port = 0)
      : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    EXPECT_GE(fd_, 0);
    const sockaddr_in any = socket_address(host, port);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { ::close(fd_); }
  /// From now on sends to this address of the server, and receives only what comes from there.
  void call_at(HostAddress server) {
    server_ = server;
    const sockaddr_in there = address_of(kNumber);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  }
  void send(const std::string& text, ProtocolNumber number = kNumber) const {
    const sockaddr_in to = address_of(number);
    EXPECT_EQ(::sendto(fd_, text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string receive() const {
    std::array<char, 100> bytes;
    const ssize_t size = testing_lrpc::receive_patiently(fd_, bytes);
    return size < 0 ? "nothing" : std::string(bytes.data(), static_cast<std::size_t>(size));
  }
  [[nodiscard]] std::uint16_t port() const {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size), 0);
    return ntohs(own.sin_port);
  }

 private:
  [[nodiscard]] sockaddr_in address_of(ProtocolNumber number) const {
    return socket_address(server_, static_cast<std::uint16_t>(UdpPorts{}.peers + number));
  }
  const int fd_;
  HostAddress server_ = kHere;
};

/// Keeps every session that a peer's message has made.
class Keeper final : public Protocol {
 public:
  explicit Keeper(Host& host) : Protocol(host, "keeper") {}
  Errc open_done(Session& lower, const ParticipantSet& /*participants*/) noexcept override {
    kept.emplace_back(&lower);
    return Errc::ok;
  }
  void demux(Session& /*lower*/, Message /*message*/) noexcept override {}
  std::vector<SessionRef> kept;
};

class UdpTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
    where_.emplace();
    server_ = std::make_unique<RealHost>(*where_, EngineKind::epoll, "server");
  }
  void serve(Protocol& high, UdpOptions options) {
    options.address = "127.0.0.1";
    server_->inside([&] {
      udp_ = &server_->keep(make_udp(**server_, "udp", options));
      ASSERT_TRUE(udp_->open_enable(high, {kNumber, {}, {}}));
    });
    server_->start(2);
  }
  Talker& echo() {
    Talker* made = nullptr;
    server_->inside([&] { made = &server_->keep(std::make_unique<Talker>(**server_, true)); });
    return *made;
  }
  [[nodiscard]] control::Statistics statistics() { return server_->asked<control::Statistics>(*udp_); }
  static Result<SessionRef> open(RealHost& host, Protocol& udp, Protocol& high) {
    Result<SessionRef> opened = Errc::limit_reached;
    host.inside([&] {
      ParticipantSet to{kNumber, {}, {}};
      to.remote.host = kHere;
      opened = udp.open(high, to);
    });
    return opened;
  }

  std::optional<Namespace> where_;
  std::unique_ptr<RealHost> server_;
  Protocol* udp_ = nullptr;
};

TEST_F(UdpTest, programs_at_any_port_are_peers_of_their_own_and_are_answered_there) {
  Talker& served = echo();
  serve(served, {.ports = {.here = {}, .any_peer = true}, .address = {}});
  where_->run([&] {
    const Program one;
    const Program other;
    for (const std::string text : {"first", "second"}) {
      one.send("one " + text);
      other.send("other " + text);
      EXPECT_EQ(one.receive(), "one " + text);
      EXPECT_EQ(other.receive(), "other " + text);
    }
    server_->inside([&] {
      ASSERT_EQ(served.announced.size(), 2U);
      EXPECT_EQ(served.announced[0].remote.host, kHere);
      EXPECT_EQ(served.announced[0].remote.port, one.port());
      EXPECT_EQ(served.announced[1].remote.port, other.port());
    });
  });
  EXPECT_EQ(statistics().sessions, 2U);
}

TEST_F(UdpTest, two_hosts_that_only_call_have_the_same_address_and_get_their_own_answers) {
  Talker& served = echo();
  serve(served, {.ports = {.here = {}, .any_peer = true}, .address = {}});
  for (int i = 0; i < 2; ++i) {
    RealHost caller(*where_, EngineKind::epoll, "caller");
    Protocol* udp = nullptr;
    Talker* talker = nullptr;
    caller.inside([&] {
      udp = &caller.keep(make_udp(*caller, "udp", {.ports = {.here = 0}, .address = "127.0.0.1"}));
      talker = &caller.keep(std::make_unique<Talker>(*caller, false));
    });
    // Beside another UDP with the same numbers: both get different ports.
    RealHost beside(*where_, EngineKind::epoll, "beside");
    beside.inside([&] {
      Protocol& its_udp = beside.keep(make_udp(*beside, "udp", {.ports = {.here = 0}, .address = "127.0.0.1"}));
      Talker& idle = beside.keep(std::make_unique<Talker>(*beside, false));
      EXPECT_TRUE(its_udp.open_enable(idle, {kNumber, {}, {}}));
    });
    Result<SessionRef> session = open(caller, *udp, *talker);
    ASSERT_TRUE(session) << session.error().message();
    caller.inside([&] { EXPECT_EQ((*session)->push(Message::make(caller->pool(), 10)), Errc::ok); });
    EXPECT_TRUE(caller.wait([&] { return talker->received == 1; }));
    caller.inside([&] { *session = {}; });
  }
  EXPECT_EQ(statistics().sessions, 2U);
}

TEST_F(UdpTest, strangers_leave_sessions_to_those_that_this_host_opens) {
  Keeper* keeper = nullptr;
  server_->inside([&] { keeper = &server_->keep(std::make_unique<Keeper>(**server_)); });
  serve(*keeper, {.ports = {.here = {}, .any_peer = true}, .address = {}, .peers = 8});
  where_->run([&] {
    std::vector<std::unique_ptr<Program>> strangers;
    for (int i = 0; i < 10; ++i) strangers.emplace_back(std::make_unique<Program>())->send("hello");
  });
  EXPECT_TRUE(eventually([&] { return statistics().refused == 4; }));
  EXPECT_EQ(statistics().sessions, 6U);
  Result<SessionRef> opened = open(*server_, *udp_, *keeper);
  EXPECT_TRUE(opened) << opened.error().message();
  server_->inside([&] {
    opened = Errc::limit_reached;
    keeper->kept.clear();
  });
}

/// A layer above FRAGMENT authenticates, so FRAGMENT makes a session for each stranger.
TEST_F(UdpTest, strangers_who_have_the_sessions_of_fragment_keep_no_other_host_out) {
  constexpr ProtocolNumber kFragment = protocol_numbers::kFragment;
  const auto port = static_cast<std::uint16_t>(UdpPorts{}.peers + kFragment);
  Talker& served = echo();
  server_->inside([&] {
    udp_ = &server_->keep(make_udp(**server_, "udp", {.ports = {}, .address = "127.0.0.1", .peers = 8}));
    Protocol& fragment = server_->keep(make_fragment(**server_, "fragment", *udp_));
    ASSERT_TRUE(fragment.open_enable(served, {kNumber, {}, {}}));
  });
  server_->start(2);
  where_->run([&] {
    for (std::uint32_t i = 1; i <= 20; ++i) {
      const HostAddress stranger{kHere.value + i};
      fragment::Header header{.clnt_host = stranger, .svr_host = kHere, .protocol_num = kNumber, .sequence_num = i};
      header.len = 1;
      std::string packet(fragment::Header::kSize + 1, 'x');
      header.encode(reinterpret_cast<std::byte*>(packet.data()));
      const Program program(stranger, port);
      EXPECT_TRUE(eventually([&] {  // idle sessions are evicted only at intervals
        program.send(packet, kFragment);
        bool heard = false;
        server_->inside([&] { heard = !served.announced.empty() && served.announced.back().remote.host == stranger; });
        return heard;
      })) << i;
    }
  });
  EXPECT_LE(statistics().sessions, 6U);
}

class UdpAddressesTest : public testing::TestWithParam<EngineKind> {};

TEST_P(UdpAddressesTest, a_peer_is_answered_from_the_address_that_it_has_called) {
  if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
  if (GetParam() == EngineKind::uring)
    if (auto engine = UringEngine::make(EngineKind::uring); !engine) GTEST_SKIP() << engine.error().message();
  const Namespace where;
  RealHost server(where, GetParam(), "server");
  server.inside([&] {
    Protocol& udp = server.keep(make_udp(*server, "udp", {.ports = {.here = {}, .any_peer = true}, .address = {}}));
    Talker& echo = server.keep(std::make_unique<Talker>(*server, true));
    ASSERT_TRUE(udp.open_enable(echo, {kNumber, {}, {}}));
  });
  server.start(2);
  where.run([&] {
    Program client;
    for (std::uint32_t i = 0; i < 100; ++i) {  // so many that the server comes to bypass its ring
      const std::string text(i % 10 == 0 ? 60'000U : 10U, 'x');
      client.call_at({kHere.value + i % 3});
      client.send(text);
      ASSERT_EQ(client.receive(), text.substr(0, 100)) << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, UdpAddressesTest, testing::Values(EngineKind::uring, EngineKind::epoll),
                         [](const testing::TestParamInfo<EngineKind>& of) {
                           return std::string(of.param == EngineKind::uring ? "uring" : "epoll");
                         });

}  // namespace
}  // namespace lrpc::netrpc::test
