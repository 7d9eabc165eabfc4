// The cost of a round trip over a device and the engine, compared with bare sockets: two namespaces, the same kind of
// socket, one thread per side. Both alternate in blocks of 1 ms; the program prints the median of the paired ratios.
//
//   ping_pong [rounds]        rounds of blocks; default 2000
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "netrpc/devices/device/interface.h"
#include "netrpc/devices/eth/eth.h"
#include "netrpc/devices/ip/ip.h"
#include "netrpc/devices/udp/udp.h"
#include "netrpc/test_support/real_host.h"

namespace lrpc::netrpc::test {
namespace {

constexpr ProtocolNumber kEngine = 240;
constexpr int kBare = 241;
constexpr std::size_t kSize = 64;
constexpr auto kBlock = std::chrono::milliseconds(1);

Result<std::unique_ptr<Protocol>> make_device(const std::string& kind, Host& host) {
  if (kind == "ETH") return make_eth(host, "eth", {});
  if (kind == "IP") return make_ip(host, "ip", {});
  return make_udp(host, "udp", {});
}

/// A bare blocking socket of the device's kind, as a program without lrpc would use it.
struct Bare {
  int fd = -1;
  std::array<std::byte, 32> peer{};
  socklen_t peer_size = 0;
  std::array<char, 2048> buffer{};

  Bare(const std::string& kind, HostAddress to, const EthernetAddress& ethernet, const std::string& interface) {
    if (kind == "ETH") {
      fd = ::socket(AF_PACKET, SOCK_DGRAM, 0);
      sockaddr_ll own{};
      own.sll_family = AF_PACKET;
      own.sll_protocol = htons(0xa700 + kBare);
      own.sll_ifindex = find_interface(interface).value().index;
      if (::bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) std::perror("bind");
      own.sll_halen = 6;
      std::memcpy(own.sll_addr, ethernet.bytes.data(), 6);
      set(own);
      return;
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    fd = kind == "IP" ? ::socket(AF_INET, SOCK_RAW, kBare) : ::socket(AF_INET, SOCK_DGRAM, 0);
    if (kind == "UDP") address.sin_port = htons(24000 + kBare);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::perror("bind");
    address.sin_addr.s_addr = htonl(to.value);
    set(address);
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;
  ~Bare() { ::close(fd); }
  template <class Address>
  void set(const Address& address) {
    std::memcpy(peer.data(), &address, sizeof address);
    peer_size = sizeof address;
  }
  void send() const {
    (void)!::sendto(fd, buffer.data(), kSize, 0, reinterpret_cast<const sockaddr*>(peer.data()), peer_size);
  }
  ssize_t receive() {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    return ::recvfrom(fd, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
  }
};

struct Block {
  double per_trip = 0;
  long trips = 0;
};

template <class Trip>
Block block(Trip trip) {
  const auto began = std::chrono::steady_clock::now();
  long trips = 0;
  auto now = began;
  do {
    trip();
    ++trips;
    now = std::chrono::steady_clock::now();
  } while (now - began < kBlock);
  return {std::chrono::duration<double, std::micro>(now - began).count() / static_cast<double>(trips), trips};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(const std::string& kind, EngineKind engine, int rounds) {
  const JoinedPair pair;
  RealHost a(pair.left, engine, "a");
  RealHost b(pair.right, engine, "b");
  Protocol* device = nullptr;
  Talker* talker = nullptr;
  SessionRef session;
  b.inside([&] {
    Protocol& echo_device = b.keep(make_device(kind, *b));
    Talker& echo = b.keep(std::make_unique<Talker>(*b, true));
    if (!echo_device.open_enable(echo, {kEngine, {}, {}})) std::abort();
  });
  b.start(2);
  EthernetAddress right_ethernet;
  EthernetAddress left_ethernet;
  pair.left.run([&] { left_ethernet = find_interface("left").value().ethernet; });
  pair.right.run([&] { right_ethernet = find_interface("right").value().ethernet; });
  a.inside([&] {
    device = &a.keep(make_device(kind, *a));
    talker = &a.keep(std::make_unique<Talker>(*a, false));
    ParticipantSet participants{kEngine, {}, {}};
    participants.remote.host = {0x0a000002};
    auto opened = device->open(*talker, participants);
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().message().c_str()), std::abort();
    session = opened.value();
  });
  a.start(1);
  std::optional<Bare> ping;
  std::optional<Bare> pong;
  pair.left.run([&] { ping.emplace(kind, HostAddress{0x0a000002}, right_ethernet, "left"); });
  pair.right.run([&] { pong.emplace(kind, HostAddress{0x0a000001}, left_ethernet, "right"); });
  std::atomic<bool> stopping{false};
  std::thread echo([&] {
    while (pong->receive() >= 0 && !stopping) pong->send();
  });

  std::uint64_t seen = 0;
  const std::function<bool()> done = [&] { return talker->received != seen; };
  const auto engine_trip = [&] {
    const Shepherd inside(a->monitor());
    seen = talker->received;
    (void)session->push(Message::make(a->pool(), kSize));
    if (!a.engine().wait(*a, done, Time::max())) std::abort();
  };
  const auto bare_trip = [&] {
    ping->send();
    (void)ping->receive();
  };
  std::vector<double> ratios;
  std::vector<double> bare;
  std::vector<double> ours;
  const EngineStatistics before_a = a.engine().statistics();
  const EngineStatistics before_b = b.engine().statistics();
  long trips = 0;
  for (int round = 0; round < rounds; ++round) {
    const Block floor = block(bare_trip);
    const Block call = block(engine_trip);
    trips += call.trips;
    bare.push_back(floor.per_trip);
    ours.push_back(call.per_trip);
    ratios.push_back(call.per_trip / floor.per_trip);
  }
  const auto per_trip = [trips](std::uint64_t now, std::uint64_t before) {
    return static_cast<double>(now - before) / static_cast<double>(trips);
  };
  const EngineStatistics after_a = a.engine().statistics();
  const EngineStatistics after_b = b.engine().statistics();
  std::printf("%-4s %-6s %8.2f %8.2f %6.3f   %6.3f %6.3f %7.4f   %6.3f %6.3f %7.4f\n", kind.c_str(),
              a.engine().kind() == EngineKind::uring ? "uring" : "epoll", median(bare), median(ours), median(ratios),
              per_trip(after_a.waits, before_a.waits), per_trip(after_a.flushes, before_a.flushes),
              per_trip(after_a.wakes, before_a.wakes), per_trip(after_b.waits, before_b.waits),
              per_trip(after_b.flushes, before_b.flushes), per_trip(after_b.wakes, before_b.wakes));
  stopping = true;
  ping->send();
  echo.join();
  a.inside([&] { session = {}; });
}

}  // namespace
}  // namespace lrpc::netrpc::test

int main(int argc, char** argv) {
  using namespace lrpc::netrpc;
  if (const auto why = test::why_no_namespaces()) {
    std::printf("skipped: %s\n", why->c_str());
    return 77;
  }
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
  std::printf("                us a round trip         caller, per trip         server, per trip\n");
  std::printf("dev  engine     bare   engine  ratio    waits  sends   wakes    waits  sends   wakes\n");
  for (const char* device : {"ETH", "IP", "UDP"})
    if (argc < 3 || std::strcmp(argv[2], device) == 0)
      for (const EngineKind kind : {EngineKind::uring, EngineKind::epoll}) test::measure(device, kind, rounds);
  return 0;
}
