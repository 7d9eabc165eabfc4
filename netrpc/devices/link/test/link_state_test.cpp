// The kernel's messages about links and addresses, decoded, and how a device on the link reacts to them.
#include "netrpc/devices/link/link_state.h"

#include <gtest/gtest.h>
#include <net/if.h>

#include <string>
#include <vector>

namespace lrpc::netrpc {
namespace {

constexpr unsigned kUp = IFF_UP | IFF_RUNNING;
constexpr HostAddress kOwn{0x0a000001};
constexpr EthernetAddress kFirst{{2, 0, 0, 0, 0, 1}};
constexpr EthernetAddress kSecond{{2, 0, 0, 0, 0, 2}};

rtnetlink::Link news_of(int index, std::string_view name, std::uint32_t mtu = 1500, unsigned flags = kUp) {
  rtnetlink::Link link;
  link.index = index;
  link.flags = flags;
  link.mtu = mtu;
  link.ethernet = kFirst;
  name.copy(link.name.data(), link.name.size() - 1);
  return link;
}
rtnetlink::Link removal_of(int index, std::string_view name) {
  rtnetlink::Link link = news_of(index, name);
  link.removed = true;
  return link;
}
LinkState eth0() {
  return LinkState({.name = "eth0", .index = 3, .ethernet = kFirst, .host = kOwn, .mtu = 1500}, kOwn);
}

TEST(LinkState, nothing_has_changed_where_the_news_says_what_is_known) {
  LinkState state = eth0();
  EXPECT_FALSE(state.heard(news_of(3, "eth0")).any());
  EXPECT_FALSE(state.found_own_address(true).any());
}

TEST(LinkState, a_link_has_the_mtu_and_the_ethernet_address_of_its_last_news) {
  LinkState state = eth0();
  rtnetlink::Link news = news_of(3, "eth0", 9000);
  news.ethernet = kSecond;
  const LinkChange change = state.heard(news);
  EXPECT_TRUE(change.mtu && change.ethernet);
  EXPECT_EQ(state.link().mtu, 9000U);
  EXPECT_EQ(state.link().ethernet, kSecond);
  EXPECT_EQ(describe(change, "eth0", state),
            "link eth0 carries 9000 bytes a frame, has the Ethernet address 02:00:00:00:00:02");
}

TEST(LinkState, news_that_does_not_say_something_changes_nothing_of_it) {
  LinkState state = eth0();
  rtnetlink::Link news;
  news.index = 3;
  news.flags = kUp;
  EXPECT_FALSE(state.heard(news).any());
  EXPECT_EQ(state.link().name, "eth0");
  EXPECT_EQ(state.link().mtu, 1500U);
}

TEST(LinkState, a_link_is_up_when_it_is_set_up_and_runs) {
  LinkState state = eth0();
  EXPECT_TRUE(state.heard(news_of(3, "eth0", 1500, IFF_UP)).went_down) << "without a carrier";
  EXPECT_FALSE(state.heard(news_of(3, "eth0", 1500, 0)).any()) << "it was down already";
  EXPECT_TRUE(state.heard(news_of(3, "eth0")).came_up);
}

TEST(LinkState, other_links_are_nobodys_business_even_with_its_name) {
  LinkState state = eth0();
  EXPECT_FALSE(state.heard(news_of(4, "eth1", 100)).any());
  EXPECT_FALSE(state.heard(news_of(4, "eth0", 100)).any());
  EXPECT_FALSE(state.heard(removal_of(4, "eth0")).any());
  EXPECT_EQ(state.link().index, 3);
}

TEST(LinkState, a_link_is_followed_under_another_name_and_comes_back_under_that) {
  LinkState state = eth0();
  EXPECT_TRUE(state.heard(news_of(3, "lan0")).renamed);
  EXPECT_TRUE(state.heard(removal_of(3, "lan0")).gone);
  EXPECT_EQ(state.link().index, 0);
  EXPECT_FALSE(state.heard(news_of(4, "eth0")).any());
  const LinkChange change = state.heard(news_of(5, "lan0", 1200));
  EXPECT_TRUE(change.back && change.mtu && change.came_up);
  EXPECT_EQ(state.link().index, 5);
  EXPECT_EQ(state.link().mtu, 1200U);
}

TEST(LinkState, the_removal_of_a_link_that_is_gone_changes_nothing) {
  LinkState state = eth0();
  EXPECT_TRUE(state.heard(removal_of(3, "eth0")).gone);
  EXPECT_FALSE(state.heard(removal_of(3, "eth0")).any());
}

TEST(LinkState, the_own_address_goes_once_and_comes_back_once) {
  LinkState state = eth0();
  EXPECT_TRUE(state.found_own_address(false).address_gone);
  EXPECT_FALSE(state.found_own_address(false).any());
  EXPECT_TRUE(state.found_own_address(true).address_back);
}

// ---- messages ----

class Payload {
 public:
  template <class Header>
  explicit Payload(const Header& header) {
    append(&header, sizeof header);
  }
  Payload& attribute(std::uint16_t type, const void* value, std::size_t size, std::size_t claimed = 0) {
    const rtattr head{static_cast<unsigned short>(claimed != 0 ? claimed : RTA_LENGTH(size)), type};
    append(&head, sizeof head);
    append(value, size);
    bytes_.resize(RTA_ALIGN(bytes_.size()));
    return *this;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void append(const void* from, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

ifinfomsg link_header(int index, unsigned char family = AF_UNSPEC) {
  ifinfomsg header{};
  header.ifi_family = family;
  header.ifi_index = index;
  header.ifi_flags = kUp;
  return header;
}

TEST(LinkNews, says_name_mtu_and_ethernet_address) {
  const std::uint32_t mtu = 1280;
  const auto link = rtnetlink::decode_link(RTM_NEWLINK, Payload(link_header(7))
                                                            .attribute(IFLA_IFNAME, "fifteen-letters", 16)
                                                            .attribute(IFLA_MTU, &mtu, sizeof mtu)
                                                            .attribute(IFLA_ADDRESS, &kSecond, sizeof kSecond)
                                                            .bytes());
  ASSERT_TRUE(link);
  EXPECT_FALSE(link->removed);
  EXPECT_EQ(link->index, 7);
  EXPECT_EQ(link->flags, kUp);
  EXPECT_EQ(link->name_view(), "fifteen-letters");
  EXPECT_EQ(link->mtu, 1280U);
  EXPECT_EQ(link->ethernet, kSecond);
}

TEST(LinkNews, of_a_bridge_about_its_port_is_not_news_of_the_link) {
  EXPECT_FALSE(rtnetlink::decode_link(RTM_DELLINK, Payload(link_header(7, AF_BRIDGE)).bytes()));
}

TEST(LinkNews, that_is_too_short_or_of_something_else_is_none) {
  const Payload payload(link_header(7));
  EXPECT_FALSE(rtnetlink::decode_link(RTM_NEWLINK, payload.bytes().first(sizeof(ifinfomsg) - 1)));
  EXPECT_FALSE(rtnetlink::decode_link(RTM_NEWADDR, payload.bytes()));
  EXPECT_FALSE(rtnetlink::decode_link(RTM_NEWLINK, Payload(link_header(0)).bytes()));
}

TEST(LinkNews, attributes_of_a_wrong_length_are_not_said) {
  const std::uint32_t mtu = 1280;
  const auto link = rtnetlink::decode_link(RTM_NEWLINK, Payload(link_header(7))
                                                            .attribute(IFLA_IFNAME, "no-end", 6)
                                                            .attribute(IFLA_IFNAME, "sixteen-letters-", 17)
                                                            .attribute(IFLA_IFNAME, "", 0)
                                                            .attribute(IFLA_MTU, &mtu, 3)
                                                            .attribute(IFLA_ADDRESS, "eight...", 8)
                                                            .bytes());
  ASSERT_TRUE(link);
  EXPECT_EQ(link->name_view(), "");
  EXPECT_EQ(link->mtu, 0U);
  EXPECT_FALSE(link->ethernet.known());
}

TEST(LinkNews, an_attribute_that_claims_more_than_there_is_ends_the_message) {
  const std::uint32_t mtu = 1280;
  const auto link =
      rtnetlink::decode_link(RTM_NEWLINK, Payload(link_header(7)).attribute(IFLA_MTU, &mtu, sizeof mtu, 200).bytes());
  ASSERT_TRUE(link);
  EXPECT_EQ(link->mtu, 0U);
}

TEST(RouteNews, says_to_which_hosts_the_route_leads) {
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = 24;
  const std::uint32_t to = htonl(0x0a000100);
  const Payload payload = Payload(header).attribute(RTA_DST, &to, sizeof to);
  for (const std::uint16_t type : {RTM_NEWROUTE, RTM_DELROUTE}) {
    const auto route = rtnetlink::decode_route(type, payload.bytes());
    ASSERT_TRUE(route);
    EXPECT_TRUE(route->leads_to({0x0a000100}));
    EXPECT_TRUE(route->leads_to({0x0a0001ff}));
    EXPECT_FALSE(route->leads_to({0x0a000201}));
  }
  EXPECT_FALSE(rtnetlink::decode_route(RTM_NEWROUTE, payload.bytes().first(sizeof header - 1)));
  EXPECT_FALSE(rtnetlink::decode_route(RTM_GETROUTE, payload.bytes()));
  header.rtm_dst_len = 33;
  EXPECT_FALSE(rtnetlink::decode_route(RTM_NEWROUTE, Payload(header).bytes()));
  header.rtm_dst_len = 0;
  const auto standard = rtnetlink::decode_route(RTM_NEWROUTE, Payload(header).bytes());
  ASSERT_TRUE(standard);
  EXPECT_TRUE(standard->leads_to({0xc0000201}));
}

TEST(AddressNews, says_the_local_address_and_not_the_peers) {
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  header.ifa_index = 7;
  const std::uint32_t own = htonl(0x0a000001);
  const std::uint32_t peer = htonl(0x0a000002);
  const Payload payload =
      Payload(header).attribute(IFA_ADDRESS, &peer, sizeof peer).attribute(IFA_LOCAL, &own, sizeof own);
  const auto address = rtnetlink::decode_address(RTM_DELADDR, payload.bytes());
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->removed);
  EXPECT_EQ(address->interface, 7);
  EXPECT_EQ(address->host, HostAddress{0x0a000001});
  EXPECT_FALSE(rtnetlink::decode_address(RTM_NEWADDR, payload.bytes().first(sizeof header - 1)));
  header.ifa_family = AF_INET6;
  EXPECT_FALSE(rtnetlink::decode_address(RTM_NEWADDR, Payload(header).bytes()));
}

}  // namespace
}  // namespace lrpc::netrpc
