// Messages between machines whose links have different MTUs: an import that succeeds can carry the interface's largest
// messages; one that cannot is refused, and the error names the reason.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "fits.client.h"
#include "fits.server.h"
#include "lrpc/server.h"
#include "two_machines.h"
#include "wide_arguments.client.h"
#include "wide_arguments.server.h"
#include "wide_results.client.h"
#include "wide_results.server.h"

namespace lrpc::netd::test {
namespace {

using Bytes = std::span<const std::byte>;

std::vector<std::byte> some_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

struct FitsService {
  void Echo(CallContext&, Bytes data, Buffer& same) { EXPECT_TRUE(same.assign(data)); }
};
struct WideArgumentsService {
  std::uint32_t Small(CallContext&, std::uint32_t value) { return value; }
  std::uint64_t Wide(CallContext&, Bytes data) { return data.size(); }
};
struct WideResultsService {
  std::uint32_t Small(CallContext&, std::uint32_t value) { return value; }
  void Wide(CallContext&, std::uint8_t, Buffer& data) { EXPECT_TRUE(data.assign(some_bytes(9000))); }
};

/// A counter of the kernel, as in netstat(8).
std::uint64_t counted(const netrpc::test::Namespace& where, const std::string& protocol, const std::string& counter) {
  std::uint64_t count = 0;
  where.run([&] {
    std::ifstream counters("/proc/thread-self/net/snmp");
    std::string names;
    std::string values;
    while (std::getline(counters, names) && !names.starts_with(protocol)) continue;
    std::getline(counters, values);
    std::istringstream name(names);
    std::istringstream value(values);
    for (std::string one, its; name >> one && value >> its;)
      if (one == counter) count = std::stoull(its);
  });
  return count;
}

/// The MTUs of the two machines' links, and whether the machines use UDP.
struct Links {
  int here;
  int there;
  bool udp;
};
void PrintTo(const Links& links, std::ostream* out) {
  *out << links.here << (links.udp ? " over UDP " : " over Ethernet ") << links.there;
}
std::string name_of(const ::testing::TestParamInfo<Links>& links) {
  return (links.param.udp ? "udp_" : "ethernet_") + std::to_string(links.param.here) + "_to_" +
         std::to_string(links.param.there);
}

/// Two machines, the servers of three interfaces on one of them, and what clients on the other one see.
class MessageSizes : public TwoMachines, public ::testing::WithParamInterface<Links> {
 protected:
  void start(bool udp) {
    here->write_keys("* " + key);
    there->write_keys("* " + key);
    server_ = std::make_unique<Server>(ServerOptions{.nameserver = there->socket()});
    ASSERT_TRUE(Fits::export_to(*server_, "fits", fits_));
    ASSERT_TRUE(WideArguments::export_to(*server_, "arguments", arguments_));
    ASSERT_TRUE(WideResults::export_to(*server_, "results", results_));
    std::vector<std::string> options;
    if (udp) options.emplace_back("--udp");
    here->start_with_keys(options);
    options.insert(options.end(), {"--export", "*"});
    there->start_with_keys(options);
  }
  template <class Client>
  [[nodiscard]] Result<Client> import_there(const std::string& name) const {
    return patiently([&] { return Client::import(name + "@" + there->address(), {.nameserver = here->socket()}); });
  }
  void expect_that_what_fits_is_carried() const {
    auto fits = import_there<Fits::Client>("fits");
    ASSERT_TRUE(fits) << fits.error().message();
    for (const unsigned size : {0U, 400U, 600U, 1400U, 1500U, 8000U, 8000U}) {
      const auto data = some_bytes(size);
      std::vector<std::byte> room(8000);
      Buffer same(room);
      const auto echoed = fits->Echo(data, same);
      ASSERT_TRUE(echoed) << size << ": " << echoed.error().message();
      EXPECT_TRUE(std::ranges::equal(same.contents(), data)) << size;
    }
  }
  void expect_that_large_messages_are_carried() const {
    auto arguments = import_there<WideArguments::Client>("arguments");
    ASSERT_TRUE(arguments) << arguments.error().message();
    EXPECT_EQ(arguments->Wide(some_bytes(9000)).value(), 9000U);
    auto results = import_there<WideResults::Client>("results");
    ASSERT_TRUE(results) << results.error().message();
    std::vector<std::byte> room(9000);
    Buffer data(room);
    ASSERT_TRUE(results->Wide(1, data));
    EXPECT_TRUE(std::ranges::equal(data.contents(), some_bytes(9000)));
  }
  void expect_that_large_messages_are_refused_by_name() const {
    const auto refused = [](const Error& error, const std::string& procedure) {
      EXPECT_EQ(error.code, Errc::message_too_long);
      for (const std::string& part : {procedure, std::string("9004 bytes"), std::string("too many")})
        EXPECT_NE(error.text.find(part), std::string::npos) << error.text;
    };
    refused(import_there<WideArguments::Client>("arguments").error(), "WideArguments.Wide");
    refused(import_there<WideResults::Client>("results").error(), "WideResults.Wide");
  }

  FitsService fits_;
  WideArgumentsService arguments_;
  WideResultsService results_;
  std::unique_ptr<Server> server_;
};

using LinksOfUnlikeSizes = MessageSizes;

TEST_P(LinksOfUnlikeSizes, carry_what_an_import_accepts_and_refuse_the_rest_by_name) {
  const Links& links = GetParam();
  here->where().ip("link set veth0 mtu " + std::to_string(links.here));
  there->where().ip("link set veth0 mtu " + std::to_string(links.there));
  ASSERT_NO_FATAL_FAILURE(start(links.udp));
  expect_that_what_fits_is_carried();
  if (std::min(links.here, links.there) >= 1500) {
    expect_that_large_messages_are_carried();
  } else {
    expect_that_large_messages_are_refused_by_name();
  }
}

INSTANTIATE_TEST_SUITE_P(All, LinksOfUnlikeSizes,
                         ::testing::Values(Links{576, 576, false}, Links{1500, 576, false}, Links{576, 1500, false},
                                           Links{9000, 576, false}, Links{1500, 9000, false}, Links{9000, 1500, false},
                                           Links{9000, 9000, false}, Links{576, 576, true}, Links{1500, 576, true},
                                           Links{576, 9000, true}, Links{9000, 1500, true}, Links{9000, 9000, true}),
                         name_of);

/// No socket listens at the discard port, so the kernel counts each such datagram.
TEST_F(TwoMachines, only_a_host_that_has_answered_is_sent_a_datagram_to_learn_of_its_path) {
  share_key();
  const Process server = start_server();
  here->start_impatient_with_keys();
  EXPECT_FALSE(import());
  EXPECT_EQ(counted(there->where(), "Udp:", "NoPorts"), 0U);
  there->start_with_keys({"--export", "conformance"});
  EXPECT_TRUE(eventually([&] { return import().has_value(); })) << "netd here is impatient";
  EXPECT_TRUE(eventually([&] { return counted(there->where(), "Udp:", "NoPorts") != 0; }));
}

/// Machines in networks of their own, joined by routers.
class Routed : public MessageSizes {
 protected:
  using Namespace = netrpc::test::Namespace;

  void SetUp() override {
    if (const auto why = netrpc::test::why_no_namespaces()) GTEST_SKIP() << *why;
    if (const auto why = netrpc::test::why_no_bridges()) GTEST_SKIP() << *why;
    here = std::make_unique<Machine>("10.7.1.1");
    there = std::make_unique<Machine>("10.7.2.1");
    key = run(std::string(LRPC_NETD) + " --generate-key").output;
  }
  /// `near` is the router next to `here`, `far` the one next to `there`.
  void join_to(const Namespace& near, const Namespace& far) const {
    netrpc::test::join(here->where(), "veth0", "10.7.1.1/24", near, "near", "10.7.1.2/24");
    netrpc::test::join(there->where(), "veth0", "10.7.2.1/24", far, "far", "10.7.2.2/24");
    here->where().ip("route add default via 10.7.1.2");
    there->where().ip("route add default via 10.7.2.2");
    near.forward();
    far.forward();
  }
};

/// One router between the machines, and a link on each side of it.
class BehindARouter : public Routed {
 protected:
  void SetUp() override {
    Routed::SetUp();
    if (IsSkipped()) return;
    router_.emplace();
    join_to(*router_, *router_);
  }
  std::optional<Namespace> router_;
};

TEST_P(BehindARouter, machines_agree_on_what_the_smaller_link_of_the_two_carries) {
  there->where().ip("link set veth0 mtu " + std::to_string(GetParam().there));
  router_->ip("link set far mtu " + std::to_string(GetParam().there));
  ASSERT_NO_FATAL_FAILURE(start(GetParam().udp));
  expect_that_what_fits_is_carried();
  expect_that_large_messages_are_refused_by_name();
}

INSTANTIATE_TEST_SUITE_P(All, BehindARouter, ::testing::Values(Links{1500, 576, false}, Links{1500, 576, true}),
                         name_of);

/// Two routers. The link between them has a smaller MTU than the links of the machines.
class BehindASmallerLink : public Routed {
 protected:
  void SetUp() override {
    Routed::SetUp();
    if (IsSkipped()) return;
    near_.emplace();
    far_.emplace();
    join_to(*near_, *far_);
    netrpc::test::join(*near_, "middle", "10.7.3.1/24", *far_, "middle", "10.7.3.2/24");
    near_->ip("route add 10.7.2.0/24 via 10.7.3.2");
    far_->ip("route add 10.7.1.0/24 via 10.7.3.1");
    for (const Namespace* const router : {&*near_, &*far_})
      router->ip("link set middle mtu " + std::to_string(GetParam().here));
  }
  /// The path MTU from `from` to `to`, as the kernel of `from` knows it.
  static int known_mtu(const Machine& from, const Machine& to) {
    int mtu = 0;
    from.in([&] {
      const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(9);
      ::inet_pton(AF_INET, to.address().c_str(), &address.sin_addr);
      socklen_t size = sizeof mtu;
      EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
      EXPECT_EQ(::getsockopt(socket.get(), IPPROTO_IP, IP_MTU, &mtu, &size), 0);
    });
    return mtu;
  }
  /// How many fragments the routers have made.
  [[nodiscard]] std::uint64_t cut_packets() const {
    return counted(*near_, "Ip:", "FragCreates") + counted(*far_, "Ip:", "FragCreates");
  }
  void expect_that_both_ends_agree() const {
    expect_that_what_fits_is_carried();
    if (GetParam().here >= 1280) {
      expect_that_large_messages_are_carried();
    } else {
      expect_that_large_messages_are_refused_by_name();
    }
  }
  std::optional<Namespace> near_;
  std::optional<Namespace> far_;
};

TEST_P(BehindASmallerLink, machines_agree_on_what_it_carries_and_routers_cut_nothing) {
  ASSERT_NO_FATAL_FAILURE(start(GetParam().udp));
  // The first import asks the routers. If they answer too late, a later import asks again.
  ASSERT_TRUE(
      eventually([&] { return import_there<Fits::Client>("fits") && known_mtu(*here, *there) == GetParam().here; }));
  ASSERT_TRUE(import_there<Fits::Client>("fits"));
  const std::uint64_t before = cut_packets();
  expect_that_both_ends_agree();
  EXPECT_EQ(cut_packets(), before);
}

TEST_P(BehindASmallerLink, what_an_import_accepts_is_carried_in_pieces_where_routers_say_nothing) {
  if (const auto why = netrpc::test::why_no_nftables()) GTEST_SKIP() << *why;
  for (const Namespace* const router : {&*near_, &*far_}) {
    router->nft("add table ip silent");
    router->nft("add chain ip silent out { type filter hook output priority 0 ; }");
    router->nft("add rule ip silent out icmp type destination-unreachable drop");
  }
  ASSERT_NO_FATAL_FAILURE(start(GetParam().udp));
  expect_that_what_fits_is_carried();
  expect_that_large_messages_are_carried();
  EXPECT_GT(cut_packets(), 0U);
}

/// `here` is the MTU of the link between the routers.
INSTANTIATE_TEST_SUITE_P(All, BehindASmallerLink,
                         ::testing::Values(Links{576, 1500, false}, Links{1280, 1500, false}, Links{576, 1500, true},
                                           Links{1280, 1500, true}),
                         name_of);

}  // namespace
}  // namespace lrpc::netd::test
