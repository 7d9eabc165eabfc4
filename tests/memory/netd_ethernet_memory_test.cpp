// An lrpc-netd without memory, with its built-in graph on an Ethernet: other machines on the link reach it by ETH and
// IP, ARP, VIP's advertisements, fragments, and Sun RPC over UDP and TCP.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "eventually.h"
#include "faulty_process.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/reserve.h"
#include "netd_machine.h"
#include "netrpc/devices/arp/arp_packet.h"
#include "netrpc/protocols/fragment/header.h"
#include "netrpc/protocols/viphosts/header.h"
#include "netrpc/test_support/namespaces.h"
#include "world.h"

namespace {

using namespace std::chrono_literals;
using namespace testing_lrpc;
using lrpc::netrpc::EthernetAddress;
using lrpc::netrpc::HostAddress;

constexpr std::uint16_t kSunPort = 24211;
constexpr std::uint16_t kFrom = 5000;
constexpr std::uint32_t kProgram = 0x20000097;
constexpr std::uint16_t kArp = 0x0806;
constexpr std::uint16_t kEthertypes = 0xa700;  ///< Ethertype of protocol number 0.
constexpr HostAddress kHere{10U << 24 | 1};
constexpr HostAddress kThere{10U << 24 | 2};

/// A Sun RPC call (RFC 5531): its header, then `values`, then `more` bytes.
std::vector<std::byte> sun_call(std::uint32_t xid, std::uint32_t procedure, const std::vector<std::uint32_t>& values,
                                std::size_t more = 0) {
  std::vector<std::uint32_t> words{xid, 0, 2, kProgram, 1, procedure, 0, 0, 0, 0};
  words.insert(words.end(), values.begin(), values.end());
  for (std::uint32_t& word : words) word = htonl(word);
  std::vector<std::byte> call(words.size() * sizeof words[0] + more);
  std::memcpy(call.data(), words.data(), words.size() * sizeof words[0]);
  return call;
}
std::vector<std::byte> sun_add(std::uint32_t xid) { return sun_call(xid, 1, {20, 22}); }

/// Connects to the netd's Sun RPC from this port of this thread's machine (0: any). The socket's receive timeout is
/// short.
lrpc::UniqueFd connect_to_sun(int type, std::uint16_t from = 0) {
  lrpc::UniqueFd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  const timeval brief{0, 100'000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof brief);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof brief);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(from);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  address.sin_port = htons(kSunPort);
  address.sin_addr.s_addr = htonl(kHere.value);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) socket.reset();
  return socket;
}
void send_to_sun(int socket, int type, std::vector<std::byte> call) {
  if (type == SOCK_STREAM) {
    const std::uint32_t mark = htonl(1U << 31 | static_cast<std::uint32_t>(call.size()));
    const auto bytes = std::as_bytes(std::span(&mark, 1));
    call.insert(call.begin(), bytes.begin(), bytes.end());
  }
  (void)::send(socket, call.data(), call.size(), MSG_NOSIGNAL);
}
/// Whether the correct sum comes back.
bool adds(int type) {
  const lrpc::UniqueFd socket = connect_to_sun(type, type == SOCK_DGRAM ? kFrom : 0);
  if (!socket) return false;
  send_to_sun(socket.get(), type, sun_add(7));
  std::array<std::byte, 256> reply{};
  const ssize_t size = ::recv(socket.get(), reply.data(), reply.size(), 0);
  return size >= 4 && reply[static_cast<std::size_t>(size) - 1] == std::byte{42};
}

/// Sends frames from a machine on the link, with any sender.
class Frames {
 public:
  Frames() : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {}
  void send(const EthernetAddress& from, std::uint16_t type, std::span<const std::byte> payload) const {
    std::vector<std::byte> frame(14 + payload.size(), std::byte{0xff});  // broadcast
    std::memcpy(&frame[6], from.bytes.data(), from.bytes.size());
    const std::uint16_t wire_type = htons(type);
    std::memcpy(&frame[12], &wire_type, sizeof wire_type);
    std::memcpy(&frame[14], payload.data(), payload.size());
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = static_cast<int>(::if_nametoindex("right"));
    to.sll_halen = 6;
    (void)::sendto(socket_.get(), frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  /// Claims by ARP to be `host`, and asks: the asker is remembered.
  void claim(const EthernetAddress& from, HostAddress host) const {
    std::array<std::byte, lrpc::netrpc::arp::kPacket> packet{};
    lrpc::netrpc::arp::encode({.sender = from, .sender_host = host, .target = {}, .target_host = kHere}, packet.data());
    send(from, kArp, packet);
  }
  /// Advertises that `host` speaks VIP.
  void advertise(const EthernetAddress& from, HostAddress host, std::uint32_t lifetime_ms) const {
    lrpc::netrpc::viphosts::Advertisement said;
    said.flags = lrpc::netrpc::viphosts::kAnswerMe;
    said.host = host;
    said.boot_id = 1;
    said.lifetime_ms = lifetime_ms;
    said.set(lrpc::netrpc::protocol_numbers::kFragment, true);
    std::array<std::byte, lrpc::netrpc::viphosts::Advertisement::kSize> packet{};
    said.encode(packet.data());
    send(from, kEthertypes + lrpc::netrpc::protocol_numbers::kVipHosts, packet);
  }
  /// Sends a whole message, or the first of two fragments.
  void send_fragment(const EthernetAddress& from, HostAddress host) const {
    lrpc::netrpc::fragment::Header header;
    header.clnt_host = host;
    header.svr_host = kHere;
    header.protocol_num = lrpc::netrpc::protocol_numbers::kAuth;
    header.num_frag = static_cast<std::uint16_t>(1 + host.value % 2);
    header.len = 8;
    std::array<std::byte, lrpc::netrpc::fragment::Header::kSize + 8> packet{};
    header.encode(packet.data());
    send(from, kEthertypes + lrpc::netrpc::protocol_numbers::kFragment, packet);
  }

 private:
  lrpc::UniqueFd socket_;
};

/// An address that nobody has.
EthernetAddress stranger(std::uint32_t number) {
  return {{2, 7, static_cast<std::uint8_t>(number >> 24), static_cast<std::uint8_t>(number >> 16),
           static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)}};
}
HostAddress stranger_host(std::uint32_t number) { return {10U << 24 | 1U << 16 | number}; }
/// An address on the link: ARP is believed only for those.
HostAddress neighbour(std::uint32_t number) { return {10U << 24 | (3 + number % 250)}; }

class NetdWithoutMemoryOnEthernet : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = lrpc::netrpc::test::why_no_namespaces()) GTEST_SKIP() << *why;
    wire_.emplace();
    here_.emplace(kHere);
    there_.emplace(kThere);
    wire_->left.run([&] { netd_.emplace(arguments(*here_, "left", {"--sun", "distant=0x20000097/1"})); });
    wire_->right.run([&] { other_ = Process(arguments(*there_, "right", {})); });
  }
  static std::vector<std::string> arguments(const NetdMachine& machine, const std::string& interface,
                                            const std::vector<std::string>& more) {
    std::vector<std::string> all{LRPC_NETD,
                                 "--nameserver",
                                 machine.nameserver(),
                                 "--interface",
                                 interface,
                                 "--keys",
                                 machine.file("keys"),
                                 "--export",
                                 "distant",
                                 "--log-level",
                                 "off",
                                 "--state",
                                 machine.file("state")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Runs `procedure` in the other machine's network namespace.
  template <class Procedure>
  void there(Procedure&& procedure) const {
    wire_->right.run(std::forward<Procedure>(procedure));
  }
  [[nodiscard]] bool serves_sun(int type) const {
    return eventually([&] {
      bool added = false;
      there([&] { added = adds(type); });
      return added;
    });
  }
  [[nodiscard]] std::size_t most_of_reserve() const {
    return testing_lrpc::most_of_reserve(netd_->pid(), here_->file("state"));
  }
  [[nodiscard]] bool well() const {
    return serves(*here_, *there_) && serves(*there_, *here_) && serves_sun(SOCK_DGRAM) && serves_sun(SOCK_STREAM);
  }

  std::optional<lrpc::netrpc::test::JoinedPair> wire_;
  std::optional<NetdMachine> here_;
  std::optional<NetdMachine> there_;
  std::optional<FaultyProcess> netd_;
  Process other_;
};

TEST_F(NetdWithoutMemoryOnEthernet, ends_a_call_or_a_binding_and_lives) {
  const auto life = [&] {
    wire_->left.ip("neigh flush dev left");  // so that ARP asks again
    call_everything(*here_, *there_);
    call_everything(*there_, *here_);
    there([&] {
      const Frames frames;
      frames.claim(stranger(1), neighbour(1));
      frames.claim(stranger(1), kHere);
      frames.advertise(stranger(1), neighbour(1), 60'000);
      frames.send_fragment(stranger(1), neighbour(1));
      frames.advertise(stranger(1), neighbour(1), 0);
      for (const int type : {SOCK_DGRAM, SOCK_STREAM}) (void)adds(type);
    });
  };
  fail_each_and_leak_nothing(
      *netd_, life, [&] { return well(); }, 100, 8);
}

TEST_F(NetdWithoutMemoryOnEthernet, remembers_no_strangers_and_goes_on_with_the_calls_it_has) {
  lrpc::Result<Distant::Client> out = lrpc::Errc::remote_unavailable;
  ASSERT_TRUE(eventually([&] { return (out = here_->import(*there_)).has_value(); })) << out.error().message();
  lrpc::Result<Distant::Client> in = lrpc::Errc::remote_unavailable;
  ASSERT_TRUE(eventually([&] { return (in = there_->import(*here_)).has_value(); })) << in.error().message();
  ASSERT_TRUE(well());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(out->Add(i, 1) && in->Add(i, 1));
  netd_->fail(1, UINT64_MAX);
  there([&] {
    const Frames frames;
    for (std::uint32_t i = 0; i < 4'000; ++i) {
      frames.advertise(stranger(i), stranger_host(i), 60'000);
      frames.send_fragment(stranger(i), stranger_host(i));
      if (i % 40 == 0) frames.claim(stranger(i), neighbour(i / 40));
      for (const int type : {SOCK_DGRAM, SOCK_STREAM}) {
        if (i % 10 != 0) continue;
        const lrpc::UniqueFd socket = connect_to_sun(type);
        if (socket) send_to_sun(socket.get(), type, i % 20 == 0 ? sun_add(i) : sun_call(i, 2, {9'000}, 9'000));
      }
      if (i % 200 != 0) continue;
      EXPECT_TRUE(out->Add(1, 2)) << "after " << i << " strangers";
      EXPECT_TRUE(in->Add(1, 2)) << "after " << i << " strangers";
      ASSERT_TRUE(netd_->alive());
    }
  });
  EXPECT_GT(netd_->failed(), 0U);
  EXPECT_EQ(there_->import(*here_).code(), lrpc::Errc::limit_reached);
  ASSERT_TRUE(netd_->alive());
  netd_->recover();
  EXPECT_TRUE(well());
  EXPECT_LT(most_of_reserve(), lrpc::reserve::kBytes - lrpc::reserve::kLast);
}

/// Memory for strangers' records does not come from the reserve.
TEST_F(NetdWithoutMemoryOnEthernet, ends_the_connections_of_records_that_are_never_whole) {
  ASSERT_TRUE(well());
  netd_->fail(1, UINT64_MAX);
  there([&] {
    std::vector<lrpc::UniqueFd> sockets;
    for (int i = 0; i < 8; ++i) {
      lrpc::UniqueFd socket;
      ASSERT_TRUE(eventually([&] { return static_cast<bool>(socket = connect_to_sun(SOCK_STREAM)); }));
      sockets.push_back(std::move(socket));
      std::vector<std::byte> part(30'000);
      const std::uint32_t mark = htonl(1U << 31 | 40'000U);
      std::memcpy(part.data(), &mark, sizeof mark);
      (void)::send(sockets.back().get(), part.data(), part.size(), MSG_NOSIGNAL);
    }
    for (const lrpc::UniqueFd& one : sockets) {
      std::byte byte{};
      EXPECT_TRUE(eventually([&] {
        const ssize_t size = ::recv(one.get(), &byte, 1, 0);
        return size == 0 || (size < 0 && errno != EAGAIN);
      }));
    }
  });
  EXPECT_TRUE(netd_->alive());
  netd_->recover();
  EXPECT_TRUE(well());
}

}  // namespace
