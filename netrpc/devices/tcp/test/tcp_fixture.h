// TCP over the loopback of a namespace: hosts with graphs, and programs that know nothing of lrpc.
#pragma once

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/devices/device/internet_address.h"
#include "netrpc/devices/tcp/tcp.h"
#include "netrpc/src/record.h"
#include "netrpc/test_support/real_host.h"
#include "receive_patiently.h"

namespace lrpc::netrpc::test {

inline constexpr ProtocolNumber kTcpUser = protocol_numbers::kFirstOfTests;
inline constexpr HostAddress kLoopback{0x7f000001};
inline constexpr std::uint16_t kPort = 4711;

/// A program's connection to kPort.
class Connection {
 public:
  /// `buffers`: the size of the socket's send and receive buffers; 0: the kernel's default. `from`: the address of the
  /// program's host.
  explicit Connection(int buffers = 0, HostAddress from = kLoopback)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (buffers != 0) {
      EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &buffers, sizeof buffers), 0);
      EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &buffers, sizeof buffers), 0);
    }
    const sockaddr_in here = socket_address(from);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
    const sockaddr_in to = socket_address(kLoopback, kPort);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      ASSERT_GT(count, 0);
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  /// How many of `bytes` could be sent without waiting.
  [[nodiscard]] std::size_t send_at_once(std::string_view bytes) const {
    return static_cast<std::size_t>(
        std::max<ssize_t>(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT), 0));
  }
  /// Whether the other end has reset the connection.
  [[nodiscard]] bool ended() const {
    pollfd socket{socket_.get(), 0, 0};
    return ::poll(&socket, 1, 0) == 1;
  }
  /// Whether the other end has closed the connection, and everything that it sent before was received.
  [[nodiscard]] bool closed() const {
    char next = 0;
    return ::recv(socket_.get(), &next, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  }
  /// Whether the other end's socket has everything that was sent.
  [[nodiscard]] bool arrived() const {
    int left = 0;
    return ::ioctl(socket_.get(), SIOCOUTQ, &left) == 0 && left == 0;
  }
  void shut_down() const { EXPECT_EQ(::shutdown(socket_.get(), SHUT_WR), 0); }
  /// Receives `size` bytes; fewer if the connection ends before.
  [[nodiscard]] std::string receive(std::size_t size) const {
    std::string bytes;
    while (bytes.size() < size) {
      std::array<char, 4096> part;
      const ssize_t count = testing_lrpc::receive_patiently(
          socket_.get(), std::span(part).first(std::min(part.size(), size - bytes.size())));
      if (count <= 0) break;
      bytes.append(part.data(), static_cast<std::size_t>(count));
    }
    return bytes;
  }

 private:
  const UniqueFd socket_;
};

inline std::string record(const std::string& text) {
  std::byte mark[kRecordMark];
  WireWriter(mark).put(record_mark(text.size()));
  return std::string(reinterpret_cast<const char*>(mark), kRecordMark) + text;
}

class TcpTest : public testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
    if (GetParam() == EngineKind::uring)
      if (auto engine = UringEngine::make(EngineKind::uring); !engine) GTEST_SKIP() << engine.error().message();
    where_.emplace();
    client_ = std::make_unique<RealHost>(*where_, GetParam(), "client");
    client_->inside([&] {
      calls_ = &client_->keep(make_tcp(**client_, "calls", {}));
      talker_ = &client_->keep(std::make_unique<Talker>(**client_, false));
    });
    client_->start(1);
  }
  void TearDown() override {
    if (client_) client_->inside([&] { session_ = {}; });
  }
  /// Starts a server at kPort with this many threads and, above its TCP, an `Above` with these arguments.
  template <class Above, class... Arguments>
  Above& serve_above(TcpOptions options, unsigned threads, Arguments... arguments) {
    server_ = std::make_unique<RealHost>(*where_, GetParam(), "server");
    Above* above = nullptr;
    options.port = kPort;
    server_->inside([&] {
      tcp_ = &server_->keep(make_tcp(**server_, "tcp", options));
      above = &server_->keep(std::make_unique<Above>(**server_, arguments...));
      EXPECT_TRUE(tcp_->open_enable(*above, {kTcpUser, {}, {}}));
    });
    server_->start(threads);
    return *above;
  }
  /// Starts an echo server at kPort.
  void serve(const TcpOptions& options = {}) { echo_ = &serve_above<Talker>(options, 2, true); }
  void open() {
    client_->inside([&] {
      ParticipantSet to{kTcpUser, {}, {}};
      to.remote.host = kLoopback;
      to.remote.port = kPort;
      auto opened = calls_->open(*talker_, to);
      ASSERT_TRUE(opened) << opened.error().message();
      session_ = *opened;
    });
  }
  Errc push(std::size_t size) {
    Errc outcome = Errc::ok;
    client_->inside([&] {
      const std::vector<std::byte> bytes(size, std::byte{7});
      outcome = session_->push(Message::copy_of_long((*client_)->pool(), bytes));
    });
    return outcome;
  }
  /// Waits until exactly this many messages and bytes have come back.
  bool receives(std::uint64_t messages, std::uint64_t bytes) {
    return client_->wait([&] { return talker_->received == messages && talker_->bytes == bytes; });
  }
  [[nodiscard]] control::Statistics statistics() { return server_->asked<control::Statistics>(*tcp_); }

  std::optional<Namespace> where_;
  std::unique_ptr<RealHost> server_;
  std::unique_ptr<RealHost> client_;
  Protocol* tcp_ = nullptr;
  Protocol* calls_ = nullptr;
  Talker* echo_ = nullptr;
  Talker* talker_ = nullptr;
  SessionRef session_;
};

}  // namespace lrpc::netrpc::test
