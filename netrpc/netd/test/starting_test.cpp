// How lrpc-netd starts: what it waits for, and that a signal ends it while it waits.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "eventually.h"
#include "frozen_nameserver.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/address.h"
#include "run.h"
#include "world.h"

namespace lrpc::netd::test {
namespace {

/// An address of the loopback interface that no other run of this test has.
std::string own_address() {
  const auto pid = static_cast<unsigned>(getpid());
  return "127." + std::to_string(8 + (pid >> 16)) + "." + std::to_string(pid >> 8 & 255) + "." +
         std::to_string(pid & 255);
}

/// A socket bound to `port` of a loopback address (0: any; stores the port chosen); none if the port is in use.
UniqueFd bound_to(int type, const std::string& address, std::uint16_t& port) {
  UniqueFd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = ::inet_addr(address.c_str());
  socklen_t size = sizeof at;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), size) != 0) return {};
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  port = ntohs(at.sin_port);
  return socket;
}

std::string netd_at(const std::string& address, const std::string& nameserver) {
  return LRPC_NETD " --udp --insecure --address " + address + " --nameserver " + nameserver;
}

TEST(StartingNetd, ends_when_it_is_told_to_while_lrpcd_does_not_answer) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const FrozenNameserver nameserver;
    Running netd(netd_at(own_address(), nameserver.path()));
    EXPECT_TRUE(nameserver.connected());
    netd.send(signal);
    const Ran ran = netd.end();
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_NE(ran.output.find("stops"), std::string::npos) << ran.output;
  }
}

TEST(StartingNetd, serves_sun_rpc_at_the_address_that_it_is_given_and_at_no_other) {
  const std::string own = own_address();
  // This test holds the same port of 127.0.0.1 for TCP and UDP: a netd that bound all addresses would not start.
  std::uint16_t port = 0;
  std::array<UniqueFd, 2> elsewhere;
  ASSERT_TRUE(eventually([&] {
    port = 0;
    elsewhere[0] = bound_to(SOCK_STREAM, "127.0.0.1", port);
    elsewhere[1] = bound_to(SOCK_DGRAM, "127.0.0.1", port);
    return elsewhere[0] && elsewhere[1];
  }));
  const FrozenNameserver nameserver;
  Running netd(netd_at(own, nameserver.path()) + " --sun files=0x20000099 --sun-port " + std::to_string(port));
  ASSERT_TRUE(nameserver.connected());
  for (const int type : {SOCK_DGRAM, SOCK_STREAM}) EXPECT_FALSE(bound_to(type, own, port)) << "it is not served";
}

TEST(RunningNetd, does_not_wait_for_a_reader_of_its_state) {
  const testing_lrpc::World world;
  const testing_lrpc::TemporaryDirectory directory;
  const std::string fifo = (directory.path() / "state").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  UniqueFd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Running netd(netd_at(own_address(), world.nameserver()) + " --state " + fifo);
  ASSERT_TRUE(netd.says(" on the network\n")) << netd.output();
  reader.reset();
  netd.send(SIGUSR1);
  EXPECT_TRUE(netd.says("cannot write " + fifo)) << netd.output();
  netd.send(SIGTERM);
  EXPECT_EQ(netd.end().status, 0) << netd.output();
}

/// An lrpc-netd that waits for a UDP port which this process holds.
class WaitingNetd : public ::testing::Test {
 protected:
  static constexpr std::uint16_t kPort = 24000 + netrpc::protocol_numbers::kFragment;
  /// lrpc-netd gives up after polling the port a hundred times. A test that was not scheduled meanwhile begins again.
  static constexpr int kTries = 5;

  /// Holds the port and starts an lrpc-netd, which has found the port in use when this returns.
  void start() {
    let_go();
    std::uint16_t port = kPort;
    ASSERT_TRUE(testing_lrpc::eventually([&] {  // the kernel may still be closing the previous sockets
      held_ = bound_to(SOCK_DGRAM, address_, port);
      return static_cast<bool>(held_);
    })) << std::strerror(errno);
    netd_.emplace(netd_at(address_, "/nonexistent"));
    ASSERT_TRUE(netd_->says("waits for a port")) << netd_->output();
  }
  void let_go() { held_.reset(); }

  std::optional<Running> netd_;

 private:
  const std::string address_ = own_address();
  UniqueFd held_;
};

TEST_F(WaitingNetd, takes_its_port_when_the_one_that_had_it_has_ended) {
  Ran ran;
  for (int i = 0; i < kTries && ran.output.find("no nameserver answers") == std::string::npos; ++i) {
    ASSERT_NO_FATAL_FAILURE(start());
    let_go();
    ran = netd_->end();
  }
  EXPECT_NE(ran.output.find("no nameserver answers"), std::string::npos) << ran.output;
}

TEST_F(WaitingNetd, gives_up_when_its_port_stays_in_use) {
  ASSERT_NO_FATAL_FAILURE(start());
  const Ran ran = netd_->end();
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("\nlrpc-netd: udp: port 24201 is in use"), std::string::npos) << ran.output;
}

TEST_F(WaitingNetd, ends_when_it_is_told_to) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Ran ran;
    for (int i = 0; i < kTries && ran.status != 0; ++i) {
      ASSERT_NO_FATAL_FAILURE(start());
      netd_->send(signal);
      ran = netd_->end();
    }
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.output.find("lrpc-netd: "), std::string::npos) << ran.output;
  }
}

}  // namespace
}  // namespace lrpc::netd::test
