// An lrpc-netd without memory: a call, a binding or a stranger's message is lost, but the netd lives on.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "distant.client.h"
#include "eventually.h"
#include "faulty_process.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/reserve.h"
#include "netd_machine.h"
#include "netrpc/protocols/fragment/header.h"
#include "world.h"

namespace {

using namespace std::chrono_literals;
using namespace testing_lrpc;
using lrpc::netrpc::HostAddress;

constexpr std::uint16_t kPort = 24000 + lrpc::netrpc::protocol_numbers::kFragment;
constexpr std::uint32_t kLoopback = 127U << 24;
constexpr std::uint32_t kStrangers = kLoopback | 1U << 23;  ///< Addresses from here on belong to nobody.

/// One of the machines, at an address of the loopback network that no other test uses.
class Machine : public NetdMachine {
 public:
  Machine()
      : NetdMachine({kLoopback | (static_cast<std::uint32_t>(::getpid()) << 3 | ++made) % (kStrangers - kLoopback)}) {}
  /// The graph has a group "others" of these two.
  void write_graph(const Machine& one, const Machine& another) const {
    std::ofstream(file("graph"))
        // Limits fragments: the loopback network would carry the longest message in one piece.
        << "udp = UDP(address = \"" << name() << "\");\nfragment = FRAGMENT(fragment_size = 1400) over udp;\n"
        << "auth = AUTH(keys = \"" << file("keys") << "\") over fragment;\n"
        << "channel = CHANNEL(give_up = 25s) over auth;\nselect = SELECT(channels = 288) over channel;\n"
        << "calls = COMPOSITE { GRPC; SYNC; ALL_ACCEPT; STILL_WORKING; NUMBER; UNIQUE; ACK(tries = 20); MEMBERSHIP; } "
        << "over auth;\nof_calls = SELECT(number = 240) over calls;\n"
        << "others = GROUP(members = [" << one.name() << ", " << another.name() << "]) over of_calls;\n";
  }
  /// For an lrpc-netd. It makes its rings at its start, so the number of its descriptors does not depend on its
  /// threads.
  [[nodiscard]] std::vector<std::string> arguments(const std::string& backend) const {
    return {LRPC_NETD,  "--nameserver", nameserver(),  "--graph", file("graph"), "--backend",  backend,
            "--export", "distant",      "--log-level", "off",     "--state",     file("state")};
  }
  /// Imports from the servers of the other two machines.
  [[nodiscard]] lrpc::Result<Distant::Client> import_group() const {
    return Distant::Client::import("distant@others", {.nameserver = nameserver()});
  }

 private:
  static inline std::uint32_t made = 0;
};

/// Three machines, each with a group of the other two.
struct Machines {
  Machines() {
    here.write_graph(there, third);
    there.write_graph(here, third);
    third.write_graph(here, there);
  }
  Machine here;
  Machine there;
  Machine third;
};

/// Whether both members of `from`'s group answer.
bool serves_group(const Machine& from) {
  return eventually([&] {
    auto client = from.import_group();
    if (!client) return false;
    const auto replies = client->all().Add(20, 22);
    std::size_t right = 0;
    if (replies)
      for (const auto& [member, sum] : *replies)
        if (sum && *sum == 42) ++right;
    return right == 2;
  });
}

class NetdWithoutMemory : public testing::TestWithParam<const char*> {
 protected:
  void call_both_ways() const {
    call_everything(here_, there_);
    call_everything(there_, here_);
    (void)here_.import(there_, "nobody", 5ms);
    (void)there_.import(here_, "nobody", 5ms);
  }
  static void call_everything_of_group(const Machine& from) {
    auto client = from.import_group();
    if (!client) return;
    (void)client->Add(1, 2);
    const std::array<std::byte, 5'000> bytes{};
    (void)client->Sum(bytes);
    (void)client->all().Add(3, 4);
  }

  const Machines machines_;
  const Machine& here_ = machines_.here;
  const Machine& there_ = machines_.there;
  FaultyProcess netd_{here_.arguments(GetParam())};
  const Process other_{there_.arguments("auto")};
  const Process third_{machines_.third.arguments("auto")};
};

TEST_P(NetdWithoutMemory, ends_a_call_or_a_binding_and_lives) {
  const auto well = [&] { return serves(here_, there_) && serves(there_, here_); };
  fail_each_and_leak_nothing(
      netd_, [&] { call_both_ways(); }, well, 100);
}

/// By one backend: in what differs between the two, the test above looks.
class NetdOftenWithoutMemory : public NetdWithoutMemory {};
INSTANTIATE_TEST_SUITE_P(OneBackend, NetdOftenWithoutMemory, testing::Values("io_uring"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(NetdOftenWithoutMemory, loses_nothing_where_the_same_is_missing_again_and_again) {
  if (!long_tests()) GTEST_SKIP() << "some ten thousand lives: LRPC_LONG_TESTS=1";
  fail_each_again_and_again(netd_, [&] { call_both_ways(); });
}

/// The netd serves the client of one group, and is a member of another.
TEST_P(NetdWithoutMemory, ends_a_call_of_a_group_or_its_binding_and_lives) {
  const auto life = [&] {
    call_everything_of_group(here_);
    call_everything_of_group(there_);
  };
  const auto well = [&] { return serves_group(here_) && serves_group(there_); };
  fail_each_and_leak_nothing(netd_, life, well, 200);  // it keeps some hundred until later keepalives
}

/// Sends a packet that makes the netd at `to` remember its sender: a whole message, or the first of two fragments.
void send_as_stranger(HostAddress from, HostAddress to) {
  const auto address_of = [](HostAddress host) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(kPort);
    address.sin_addr.s_addr = htonl(host.value);
    return address;
  };
  const lrpc::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in own = address_of(from);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) return;
  lrpc::netrpc::fragment::Header header;
  header.clnt_host = from;
  header.svr_host = to;
  header.protocol_num = lrpc::netrpc::protocol_numbers::kAuth;
  header.num_frag = static_cast<std::uint16_t>(1 + from.value % 2);
  header.len = 8;
  std::array<std::byte, lrpc::netrpc::fragment::Header::kSize + 8> packet{};
  header.encode(packet.data());
  const sockaddr_in peer = address_of(to);
  (void)::sendto(socket.get(), packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&peer), sizeof peer);
}

TEST_P(NetdWithoutMemory, remembers_no_strangers_and_goes_on_with_the_calls_it_has) {
  lrpc::Result<Distant::Client> out = lrpc::Errc::remote_unavailable;
  ASSERT_TRUE(eventually([&] { return (out = here_.import(there_)).has_value(); })) << out.error().message();
  lrpc::Result<Distant::Client> in = lrpc::Errc::remote_unavailable;
  ASSERT_TRUE(eventually([&] { return (in = there_.import(here_)).has_value(); })) << in.error().message();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(out->Add(i, 1) && in->Add(i, 1));
  netd_.fail(1, UINT64_MAX);
  for (std::uint32_t i = 0; i < 4000; ++i) {
    send_as_stranger({kStrangers + i}, here_.address());
    if (i % 100 != 0) continue;
    EXPECT_TRUE(out->Add(1, 2)) << "after " << i << " strangers";
    EXPECT_TRUE(in->Add(1, 2)) << "after " << i << " strangers";
    ASSERT_TRUE(netd_.alive());
  }
  EXPECT_GT(netd_.failed(), 0U);
  EXPECT_EQ(here_.import(there_).code(), lrpc::Errc::limit_reached);
  EXPECT_EQ(there_.import(here_).code(), lrpc::Errc::limit_reached);
  EXPECT_TRUE(netd_.alive());
  netd_.recover();
  EXPECT_TRUE(serves(here_, there_));
  EXPECT_TRUE(serves(there_, here_));
  const std::size_t most = most_of_reserve(netd_.pid(), here_.file("state"));
  EXPECT_GT(most, lrpc::reserve::kBytes / 4) << "they have been remembered while there was some";
  EXPECT_LT(most, lrpc::reserve::kBytes - lrpc::reserve::kLast);
}

/// A client on a machine whose lrpc-netd has enough memory.
class ClientOfOtherHosts : public testing::Test {
 protected:
  /// Whether a client lives on and its calls to `to`, whose allocations fail, have the results that they must have.
  static bool comes_to_what_it_must(const Machine& from, const std::string& to, const char* kind) {
    const FaultyProcess client({LRPC_DISTANT_CLIENT, from.nameserver(), "distant@" + to, kind});
    return eventually([&] { return client.good() >= 3 || !client.alive(); }) && client.alive();
  }

  const Machines machines_;
  const Process here_{machines_.here.arguments("auto")};
  const Process there_{machines_.there.arguments("auto")};
  const Process third_{machines_.third.arguments("auto")};
};

TEST_F(ClientOfOtherHosts, is_told_that_a_call_has_failed_for_which_it_has_no_memory) {
  ASSERT_TRUE(serves(machines_.here, machines_.there));
  EXPECT_TRUE(comes_to_what_it_must(machines_.here, machines_.there.name(), "HOST"));
}

TEST_F(ClientOfOtherHosts, is_told_of_replies_of_a_group_for_which_it_has_no_memory) {
  ASSERT_TRUE(serves_group(machines_.here));
  EXPECT_TRUE(comes_to_what_it_must(machines_.here, "others", "GROUP"));
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, NetdWithoutMemory, testing::Values("io_uring", "epoll"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
