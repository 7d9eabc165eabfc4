// Host, Peers, addresses, and the encoding of header fields.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "graph_kinds.h"
#include "lrpc/netrpc/participant_set.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

TEST(Peers, a_reboot_is_told_to_everybody_once) {
  Peers peers(1);
  std::vector<std::string> told;
  for (const char* who : {"a", "b"})
    peers.watch([&told, who](HostAddress host, BootId before, BootId now) {
      told.push_back(std::string(who) + " " + to_string(host) + " " + std::to_string(before) + " " +
                     std::to_string(now));
    });
  const HostAddress host{0x0a000001};
  EXPECT_EQ(peers.boot_id(host), 0U);
  peers.heard(host, 5);
  peers.heard(host, 5);
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(peers.boot_id(host), 5U);
  peers.heard(host, 6);
  EXPECT_EQ(told, (std::vector<std::string>{"a 10.0.0.1 5 6", "b 10.0.0.1 5 6"}));
  peers.forget(host);
  EXPECT_EQ(peers.size(), 0U);
  peers.heard(host, 7);
  EXPECT_EQ(told.size(), 2U);
}

TEST(Peers, a_flood_of_forged_hosts_is_bounded_and_those_known_are_kept) {
  Peers peers(1);
  int reboots = 0;
  peers.watch([&](HostAddress, BootId, BootId) { ++reboots; });
  for (std::uint32_t i = 1; i <= Peers::kMost + 1000; ++i) peers.heard({i}, 1);
  EXPECT_EQ(peers.size(), Peers::kMost);
  EXPECT_EQ(peers.boot_id({Peers::kMost + 1}), 0U);
  peers.heard({1}, 2);
  EXPECT_EQ(reboots, 1);
}

TEST(HostTest, one_seed_gives_one_run_and_no_seed_another) {
  test::ManualClock clock;
  test::IdleEngine engine;
  Host a({.name = "a", .address = {}, .boot_id = 0, .seed = 7}, clock, engine);
  Host b({.name = "b", .address = {}, .boot_id = 0, .seed = 7}, clock, engine);
  Host c({}, clock, engine);
  Host d({}, clock, engine);
  EXPECT_EQ(a.boot_id(), b.boot_id());
  EXPECT_EQ(a.hash_seed(), b.hash_seed());
  EXPECT_EQ(a.random(), b.random());
  EXPECT_NE(a.random(), a.random());
  EXPECT_NE(c.hash_seed(), d.hash_seed());
  EXPECT_NE(c.boot_id(), 0U);
  Host given({.name = "given", .address = {9}, .boot_id = 42}, clock, engine);
  EXPECT_EQ(given.boot_id(), 42U);
  EXPECT_EQ(given.address().value, 9U);
}

/// The state of the random generator when it returned `number`: each of its steps can be inverted.
std::uint64_t state_behind(std::uint64_t number) {
  number ^= number >> 31 ^ number >> 62;
  number *= 0x319642b2d24d8ec3ULL;
  number ^= number >> 27 ^ number >> 54;
  number *= 0x96de1b173f119089ULL;
  return number ^ number >> 30 ^ number >> 60;
}

TEST(HostTest, who_has_seen_random_numbers_of_a_host_cannot_compute_the_seed_of_its_hashes) {
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  test::ManualClock clock;
  test::IdleEngine engine;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}}) {
    Host host({.name = "host", .address = {}, .boot_id = 0, .seed = seed}, clock, engine);
    const std::uint64_t seen = host.random();
    const std::uint64_t next = host.random();
    if (seed != 0) {
      ASSERT_EQ(state_behind(seen) + kStep, state_behind(next)) << "the state is really computed";
    }
    for (std::uint64_t steps = 0; steps < 100; ++steps)
      EXPECT_NE(state_behind(host.hash_seed()), state_behind(next) - steps * kStep);
  }
}

TEST(HostTest, who_has_seen_random_numbers_of_a_host_without_a_seed_cannot_compute_the_next) {
  test::ManualClock clock;
  test::IdleEngine engine;
  Host host({}, clock, engine);
  for (int i = 0; i < 100; ++i) {
    std::uint64_t state = state_behind(host.random());
    const std::uint64_t computed = next_random(state);
    EXPECT_NE(host.random(), computed);
  }
}

TEST(HostTest, notices_are_bounded_and_the_next_one_says_how_many_were_left_out) {
  test::ManualClock clock;
  test::IdleEngine engine;
  HostOptions options;
  std::vector<std::string> told;
  options.notice = [&](std::string text) { told.push_back(std::move(text)); };
  Host host(std::move(options), clock, engine);
  for (std::uint64_t i = 0; i < Host::kNotices + 5; ++i) host.notice([] { return std::string("again"); });
  EXPECT_EQ(told.size(), Host::kNotices);
  clock.advance(Host::kNoticePause);
  for (int i = 0; i < 2; ++i) host.notice([] { return std::string("later"); });
  ASSERT_EQ(told.size(), Host::kNotices + 1);
  EXPECT_EQ(told.back(), "later (before that, 5 reports were left out)");
}

TEST(HostTest, a_notice_for_which_there_is_no_memory_is_left_out) {
  test::ManualClock clock;
  test::IdleEngine engine;
  HostOptions options;
  int asked = 0;
  options.notice = [&](const std::string&) {
    ++asked;
    throw std::bad_alloc();
  };
  Host host(std::move(options), clock, engine);
  host.notice([] { return std::string("text"); });
  EXPECT_EQ(asked, 1);
}

TEST(HostTest, the_monitor_knows_who_is_inside) {
  Monitor monitor;
  EXPECT_FALSE(monitor.held());
  {
    const Shepherd inside(monitor);
    EXPECT_TRUE(monitor.held());
    std::thread other([&] {
      EXPECT_FALSE(monitor.held());
      EXPECT_FALSE(monitor.try_lock());
    });
    other.join();
  }
  EXPECT_FALSE(monitor.held());
}

TEST(HostTest, an_unwanted_request_without_a_buffer_is_answered_empty) {
  test::ManualClock clock;
  test::IdleEngine engine;
  Host host({}, clock, engine);
  class Plain final : public Protocol {
   public:
    using Protocol::Protocol;
  } protocol(host, "plain");
  class Answered final : public Session {
   public:
    Answered(Protocol& p) : Session(p, p, {}) {}
    void reply(Message message) noexcept override {
      EXPECT_TRUE(message.empty());
      ++replies;
    }
    int replies = 0;
  };
  auto* const session = new Answered(protocol);
  const SessionRef keep(session);
  protocol.call_demux(*session, Message());
  EXPECT_EQ(session->replies, 1);
  EXPECT_EQ(test::asked<control::Statistics>(protocol).no_session, 1U);
  // A protocol or session that lacks an operation reports that.
  EXPECT_EQ(protocol.open(protocol, {}).error().text, "plain cannot be opened");
  EXPECT_EQ(protocol.open_enable(protocol, {}).code(), Errc::not_supported);
  EXPECT_EQ(session->push({}), Errc::not_supported);
}

TEST(Addresses, are_read_and_written_as_people_do) {
  EXPECT_EQ(to_string(HostAddress{0x0a0b0cff}), "10.11.12.255");
  EXPECT_EQ(to_string(HostAddress{}), "?");
  EXPECT_EQ(parse_host("10.11.12.255"), HostAddress{0x0a0b0cff});
  for (const char* wrong : {"", "10.0.0", "10.0.0.256", "10.0.0.1 ", "a.b.c.d", "::1", "10.0.0.1.2"})
    EXPECT_EQ(parse_host(wrong), std::nullopt) << wrong;
  EXPECT_EQ(parse_host(std::string_view("10.0.0.1\0x", 10)), std::nullopt);
  EXPECT_EQ(to_string(EthernetAddress{{2, 0, 0, 0, 0xab, 1}}), "02:00:00:00:ab:01");
  EXPECT_FALSE(EthernetAddress{}.known());
  ParticipantSet participants{201, {}, {}};
  participants.remote.host = {0x0a000002};
  EXPECT_EQ(to_string(participants), "201 ? -> 10.0.0.2");
}

TEST(Wire, fields_are_written_in_network_order_and_read_back) {
  std::byte bytes[19];
  const WireWriter end = WireWriter(bytes)
                             .put(std::uint8_t{0xfe})
                             .put(std::uint16_t{0x0102})
                             .put(std::uint32_t{0xa0b0c0d0})
                             .put(std::uint64_t{0x1122334455667788})
                             .put(HostAddress{0x0a000001});
  EXPECT_EQ(end.at(), bytes + 19);
  const unsigned char expected[19] = {0xfe, 1,    2,    0xa0, 0xb0, 0xc0, 0xd0, 0x11, 0x22, 0x33,
                                      0x44, 0x55, 0x66, 0x77, 0x88, 10,   0,    0,    1};
  EXPECT_EQ(std::memcmp(bytes, expected, sizeof expected), 0);
  WireReader reader(bytes);
  EXPECT_EQ(reader.get<std::uint8_t>(), 0xfe);
  EXPECT_EQ(reader.get<std::uint16_t>(), 0x0102);
  EXPECT_EQ(reader.get<std::uint32_t>(), 0xa0b0c0d0);
  EXPECT_EQ(reader.get<std::uint64_t>(), 0x1122334455667788U);
  EXPECT_EQ(reader.get_host(), HostAddress{0x0a000001});
  EXPECT_EQ(reader.at(), bytes + 19);
}

}  // namespace
}  // namespace lrpc::netrpc
