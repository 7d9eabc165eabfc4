// lrpc's own ARP packets: their bytes, and when they are sent.
#include <gtest/gtest.h>

#include <array>

#include "netrpc/devices/arp/arp_packet.h"
#include "netrpc/devices/arp/arp_policy.h"

namespace lrpc::netrpc::arp {
namespace {

using namespace std::chrono_literals;

constexpr HostAddress kNeighbour{0x0a000002};

TEST(ArpPacket, has_the_bytes_of_rfc_826) {
  std::array<std::byte, kPacket> bytes{};
  encode({.reply = false,
          .sender = {{2, 0, 0, 0, 0, 1}},
          .sender_host = {0x0a000001},
          .target = {},
          .target_host = kNeighbour},
         bytes.data());
  constexpr std::array<unsigned char, kPacket> kExpected{0,  1, 8, 0, 6, 4, 0, 1, 2, 0, 0,  0, 0, 1,
                                                         10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2};
  for (std::size_t i = 0; i < kPacket; ++i) EXPECT_EQ(std::to_integer<int>(bytes[i]), kExpected[i]) << i;
}

TEST(ArpPacket, is_read_as_it_was_written_with_padding_behind_it) {
  std::array<std::byte, 46> bytes{};
  const Packet sent{.reply = true,
                    .sender = {{2, 0, 0, 0, 0, 1}},
                    .sender_host = {0x0a000001},
                    .target = {{2, 0, 0, 0, 0, 2}},
                    .target_host = kNeighbour};
  encode(sent, bytes.data());
  const auto packet = decode(bytes);
  ASSERT_TRUE(packet);
  EXPECT_TRUE(packet->reply);
  EXPECT_EQ(packet->sender, sent.sender);
  EXPECT_EQ(packet->sender_host, sent.sender_host);
  EXPECT_EQ(packet->target, sent.target);
  EXPECT_EQ(packet->target_host, sent.target_host);
  EXPECT_FALSE(decode(std::span(bytes).first(kPacket - 1))) << "too short";
}

TEST(ArpPacket, of_other_networks_and_operations_is_none) {
  std::array<std::byte, kPacket> bytes{};
  encode({}, bytes.data());
  ASSERT_TRUE(decode(bytes));
  for (std::size_t i = 0; i < 8; ++i) {
    auto other = bytes;
    other[i] ^= std::byte{0x40};
    EXPECT_FALSE(decode(other)) << i;
  }
}

TEST(OwnAddress, is_probed_for_three_times_and_then_announced_twice) {
  OwnAddress own;
  own.begin();
  std::string sent;
  Time now{};
  for (int i = 0; i < 10; ++i) {
    const auto action = own.tick(now);
    sent += action.probe ? "p" : action.announce ? "a" : "-";
    EXPECT_FALSE(action.report);
    if (own.pause() == Duration(0)) break;
    now += own.pause();
  }
  EXPECT_EQ(sent, "pppaa");
  EXPECT_EQ(now, 2 * OwnAddress::kProbePause + 2 * OwnAddress::kAnnouncePause);
}

TEST(OwnAddress, that_another_machine_turns_out_to_have_is_reported_and_neither_defended_nor_announced) {
  OwnAddress own;
  own.begin();
  (void)own.tick(0s);
  const auto action = own.claimed(1ms);
  EXPECT_TRUE(action.report && !action.announce) << "who had it first may be no defender";
  std::string sent;
  for (Time now = 1s; own.pause() != Duration(0); now += own.pause()) sent += own.tick(now).announce ? "a" : "-";
  EXPECT_EQ(sent, "----");
}

TEST(OwnAddress, a_flood_of_claims_brings_about_a_report_a_minute_and_one_announcement) {
  OwnAddress own;
  int reports = 0;
  int announcements = 0;
  for (Time now = 0s; now < 10min; now += 1ms) {
    const auto action = own.claimed(now);
    reports += action.report ? 1 : 0;
    announcements += action.announce ? 1 : 0;
  }
  EXPECT_EQ(reports, 10);
  EXPECT_EQ(announcements, 1) << "two machines that defend it must not go on for ever";
}

TEST(OwnAddress, is_defended_again_after_a_while_without_claims) {
  OwnAddress own;
  EXPECT_TRUE(own.claimed(0s).announce);
  EXPECT_FALSE(own.claimed(9s).announce);
  EXPECT_TRUE(own.claimed(9s + OwnAddress::kDefendPause).announce);
}

TEST(Confirmations, a_silent_neighbour_is_polled_where_it_was_and_then_everybody_is_asked) {
  Confirmations confirmations(1);
  std::string polls;
  for (Time now = 1s; now < 3s; now += 100ms) {
    switch (confirmations.doubted(kNeighbour, now)) {
      case Confirmations::Poll::unicast: polls += "u"; break;
      case Confirmations::Poll::broadcast: polls += "b"; break;
      case Confirmations::Poll::none: polls += "."; break;
    }
  }
  EXPECT_EQ(polls, "u..u..b.....b.......");
}

TEST(Confirmations, broadcasts_become_seldom_and_doubts_begin_anew_after_a_minute) {
  Confirmations confirmations(1);
  int broadcasts = 0;
  Time now = 1s;
  for (; now < 1h; now += 100ms)
    broadcasts += confirmations.doubted(kNeighbour, now) == Confirmations::Poll::broadcast ? 1 : 0;
  EXPECT_LE(broadcasts, 8 + 3600 / 30);
  EXPECT_EQ(confirmations.doubted(kNeighbour, now + 31s), Confirmations::Poll::broadcast);
  EXPECT_EQ(confirmations.doubted(kNeighbour, now + 31s + Confirmations::kForgotten), Confirmations::Poll::unicast);
}

TEST(Confirmations, all_neighbours_together_are_polled_so_often_and_not_more) {
  Confirmations confirmations(1);
  unsigned polls = 0;
  for (std::uint32_t i = 1; i <= 100'000; ++i)
    polls += confirmations.doubted({i}, 1s) != Confirmations::Poll::none ? 1U : 0U;
  EXPECT_EQ(polls, Confirmations::kMost);
  EXPECT_EQ(confirmations.doubted({1}, 1s + Confirmations::kPause), Confirmations::Poll::unicast) << "and later again";
}

}  // namespace
}  // namespace lrpc::netrpc::arp
