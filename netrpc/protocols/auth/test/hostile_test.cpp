// AUTH with an attacker on the wire, and with every fault of a wire.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "length.h"
#include "netrpc/protocols/auth/test/auth_fixture.h"

namespace lrpc::netrpc::auth {
namespace {

TEST_P(AuthBy, nothing_on_the_wire_can_be_read) {
  start();
  send(0, "a secret that is long enough to be found");
  run();
  ASSERT_EQ(received(1).size(), 1U);
  for (const std::string& packet : stacks[1].tap->arrived) EXPECT_EQ(packet.find("secret"), std::string::npos);
}

TEST_P(AuthBy, a_host_with_another_key_gets_nothing_and_leaves_nothing) {
  start("* " + generate_key(), "* " + generate_key());
  send(0, "secret");
  run(60s);
  EXPECT_TRUE(received(1).empty());
  EXPECT_EQ(statistics(1).state, 0U);
  EXPECT_EQ(statistics(1).sessions, 0U);
  EXPECT_EQ(statistics(1).sent, 0U) << "and is not answered";
  EXPECT_GE(statistics(1).refused, 1U);
  EXPECT_EQ(statistics(0).failed, 1U) << "the message that waited";
  const Shepherd inside((*net)[1].monitor());
  EXPECT_EQ((*net)[1].host().peers().boot_id(net->address(0)), 0U) << "only authentic boot identifiers are believed";
}

TEST_P(AuthBy, a_peer_that_we_have_no_key_for_is_not_answered) {
  const std::string key = generate_key();
  start("* " + key, "10.0.0.77 " + key);
  send(0, "hello");
  run();
  EXPECT_TRUE(received(1).empty());
  EXPECT_EQ(statistics(1).sent, 0U);
}

TEST_F(Auth, sessions_without_users_make_room_for_other_hosts) {
  const KeyFile keys("* " + generate_key());
  SimHosts machines(8);
  SimHost& machine = machines[0];
  Options options;
  options.set("keys", keys.path());
  options.set("peers", "4");
  options.set("sessions", "4");
  const Shepherd inside(machine.monitor());
  auto made = auth_kind().make({machine.host(), "auth", {&machine.ip()}, options});
  ASSERT_TRUE(made) << made.error().message();
  Protocol& auth = **made;
  machine.own(std::shared_ptr<Protocol>(std::move(*made)));
  auto& sink = machine.add<SinkProtocol>();
  for (std::size_t i = 1; i < 8; ++i) EXPECT_TRUE(auth.open(sink, machines.to(i))) << "host " << i;
}

TEST_P(AuthBy, a_message_that_is_repeated_is_delivered_once) {
  start();
  send(0, "once");
  run();
  const std::string packet = arrived(1, Type::data).back();
  for (int i = 0; i < 5; ++i) inject(1, packet);
  EXPECT_EQ(received(1), Texts{"once"});
  EXPECT_EQ(statistics(1).duplicates, 5U);
}

TEST_P(AuthBy, messages_in_another_order_are_delivered_as_far_as_the_window_reaches) {
  start();
  const SessionRef session = open(0, 1);
  ASSERT_EQ(push(0, session, "first"), Errc::ok);
  run();
  std::vector<std::string> kept;
  stacks[1].tap->on_arrival = [&kept](std::string& packet) {
    kept.push_back(packet);
    return false;
  };
  for (int i = 0; i < 1025; ++i) ASSERT_EQ(push(0, session, std::to_string(i)), Errc::ok);
  run();
  ASSERT_EQ(kept.size(), 1025U);
  received(1).clear();
  inject(1, kept[1024]);
  inject(1, kept[1]);
  inject(1, kept[500]);
  inject(1, kept[0]);  // 1,024 behind the newest
  EXPECT_EQ(received(1), (Texts{"1024", "1", "500"}));
}

TEST_P(AuthBy, bits_that_were_flipped_and_ends_that_were_cut_off_are_noticed) {
  start();
  send(0, "message");
  run();
  const auto packets = stacks[1].tap->arrived;
  received(1).clear();
  const auto before = statistics(1);
  std::uint64_t bad = 0;
  for (const std::string& original : packets) {
    if (type_of(original) != Type::data) continue;
    const std::size_t sent_size = DataHeader::kSize + 4 + 7;
    for (std::size_t bit = 0; bit < 8 * sent_size; ++bit, ++bad) {
      std::string packet = original;
      packet[bit / 8] = static_cast<char>(packet[bit / 8] ^ (1 << bit % 8));
      inject(1, packet);
    }
    for (std::size_t size = 0; size < sent_size; ++size, ++bad) inject(1, original.substr(0, size));
  }
  EXPECT_GT(bad, 0U);
  EXPECT_TRUE(received(1).empty());
  const auto after = statistics(1);
  EXPECT_EQ(after.refused + after.malformed + after.duplicates - before.refused - before.malformed - before.duplicates,
            bad);
  EXPECT_EQ(after.state, before.state);
  run();
  send(0, "still there");
  run();
  EXPECT_EQ(received(1).back(), "still there");
}

TEST_P(AuthBy, handshake_packets_that_were_changed_or_cut_do_nothing) {
  start();
  send(0, "message");
  run();
  for (const std::size_t at : {0U, 1U}) {
    const auto packets = stacks[at].tap->arrived;
    const auto before = statistics(at);
    for (const std::string& original : packets) {
      if (type_of(original) == Type::data) continue;
      const std::size_t size = type_of(original) == Type::hello       ? Hello::kSize
                               : type_of(original) == Type::challenge ? Challenge::kSize
                                                                      : HelloReply::kSize;
      for (std::size_t bit = 0; bit < 8 * size; ++bit) {
        std::string packet = original;
        packet[bit / 8] = static_cast<char>(packet[bit / 8] ^ (1 << bit % 8));
        inject(at, packet);
      }
      for (std::size_t cut = 0; cut < size; ++cut) inject(at, original.substr(0, cut));
    }
    run();
    EXPECT_LE(statistics(at).sent - before.sent, 32U) << "answers, if any, are rate-limited";
    EXPECT_EQ(statistics(at).state, before.state);
  }
  received(1).clear();
  send(0, "goes on");
  run();
  EXPECT_EQ(received(1), Texts{"goes on"});
}

TEST_P(AuthBy, a_flood_of_repeated_hellos_makes_no_state_and_takes_none_away) {
  start();
  send(0, "before");
  run();
  const auto hellos = arrived(1, Type::hello);
  ASSERT_GE(hellos.size(), 1U);
  const auto before = statistics(1);
  for (int i = 0; i < 1000; ++i)
    for (const std::string& hello : hellos) inject(1, hello);
  EXPECT_EQ(statistics(1).state, before.state);
  run();
  const auto data_before = arrived(1, Type::data).size();
  send(0, "after");
  run();
  EXPECT_EQ(received(1), (Texts{"before", "after"}));
  EXPECT_EQ(arrived(1, Type::data).size(), data_before + 1) << "with the association they had";
}

TEST_P(AuthBy, a_hello_that_is_repeated_from_elsewhere_does_not_lead_messages_there) {
  /// A session that leads nowhere and claims to lead to the peer.
  class Elsewhere final : public Session {
   public:
    Elsewhere(Protocol& below, Protocol& high, const ParticipantSet& participants)
        : Session(below, high, participants) {}
    Errc push(Message) noexcept override {
      ++pushed;
      return Errc::ok;
    }
    int pushed = 0;
  };
  start();
  send(0, "before");
  run();
  const std::string hello = arrived(1, Type::hello).front();
  (*net)[1].crash();
  (*net)[1].boot();
  {
    const Shepherd inside((*net)[1].monitor());
    auto* const elsewhere = new Elsewhere(*stacks[1].tap, *stacks[1].auth, net->to(0));
    const SessionRef keep(elsewhere);
    stacks[1].auth->demux(*elsewhere, Message::copy_of((*net)[1].pool(), std::as_bytes(std::span(hello))));
    EXPECT_EQ(elsewhere->pushed, 1) << "the challenge";
  }
  send(1, "out");
  run();
  EXPECT_EQ(received(0), Texts{"out"});
}

TEST_P(AuthBy, an_honest_handshake_succeeds_amid_a_flood_of_repeated_hellos) {
  start();
  send(0, "old");
  run();
  const auto hellos = arrived(1, Type::hello);
  (*net)[0].crash();
  (*net)[0].boot();
  stacks[1].tap->on_arrival = [&](std::string&) {
    for (const std::string& hello : hellos) stacks[1].tap->inject(hello);
    return true;
  };
  send(0, "new");
  run();
  EXPECT_EQ(received(1).back(), "new");
}

TEST_P(AuthBy, sealed_packets_of_unknown_associations_are_answered_at_a_limited_rate) {
  start();
  send(0, "message");
  run();
  std::string packet = arrived(1, Type::data).back();
  const auto before = statistics(1);
  for (int i = 0; i < 1000; ++i) {
    packet[12] = static_cast<char>(i);
    packet[13] = static_cast<char>(i / 256 + 1);
    inject(1, packet);
  }
  EXPECT_LE(statistics(1).sent - before.sent, 32U);
  run();
  EXPECT_TRUE(arrived(0, Type::hello).empty());
  EXPECT_LE(arrived(1, Type::hello).size(), 2U) << "and nobody begins a handshake for associations that it never had";
}

TEST_P(AuthBy, a_flood_of_sealed_packets_keeps_a_rebooted_host_apart_for_seconds_only) {
  start();
  const SessionRef session = open(0, 1);
  ASSERT_EQ(push(0, session, "before"), Errc::ok);
  run();
  std::string forged = arrived(1, Type::data).back();
  (*net)[1].crash();
  (*net)[1].boot();
  // Forged packets of unknown associations precede each packet. They use up the rate limit of the host's nudges, which
  // say that an association is unknown.
  std::uint32_t made_up = 0;
  stacks[1].tap->on_arrival = [&](std::string& packet) {
    for (int i = 0; type_of(packet) == Type::data && i < 40; ++i) {
      ++made_up;
      forged[12] = static_cast<char>(made_up);
      forged[13] = static_cast<char>(made_up / 256);
      stacks[1].tap->inject(forged);
    }
    return true;
  };
  for (int i = 0; i < 40 && received(1).empty(); ++i) {
    ASSERT_EQ(push(0, session, "after"), Errc::ok);
    run(250ms);
  }
  EXPECT_FALSE(received(1).empty());
}

TEST_P(AuthBy, a_peer_that_only_listens_is_asked_now_and_then_whether_it_is_there) {
  start();
  const SessionRef session = open(0, 1);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(push(0, session, std::to_string(i)), Errc::ok);
    run(20ms);
  }
  EXPECT_EQ(received(1).size(), 1000U);
  EXPECT_GE(arrived(1, Type::hello).size(), 3U);
  EXPECT_LE(arrived(1, Type::hello).size(), 10U);
}

TEST_P(AuthBy, packets_of_an_earlier_life_do_not_disturb_the_present_one) {
  start();
  send(0, "before");
  run();
  const auto old_at_0 = stacks[0].tap->arrived;
  const auto old_at_1 = stacks[1].tap->arrived;
  (*net)[1].crash();
  (*net)[1].boot();
  send(0, "lost");
  run();
  send(0, "after");
  run();
  const auto handshakes = arrived(1, Type::hello).size();
  for (int round = 0; round < 100; ++round) {
    for (const std::string& packet : old_at_0) inject(0, packet);
    for (const std::string& packet : old_at_1) inject(1, packet);
  }
  run();
  EXPECT_LE(arrived(1, Type::hello).size(), handshakes) << "nobody was made to begin another";
  send(0, "on");
  run();
  EXPECT_EQ(received(1), (Texts{"after", "on"}));
}

TEST_P(AuthBy, a_hello_of_an_earlier_life_that_was_held_back_does_not_bring_that_life_back) {
  Options options;
  options.set("rekey_messages", "2");
  start({}, options);
  send(1, "one");
  run();
  std::string held;
  stacks[0].tap->on_arrival = [&held](std::string& packet) {
    if (type_of(packet) != Type::hello) return true;
    held = packet;
    return false;
  };
  for (int i = 0; i < 10 && held.empty(); ++i) {
    send(1, "more");
    run();
  }
  ASSERT_FALSE(held.empty()) << "a handshake in which it knows this host's challenge";
  stacks[0].tap->on_arrival = nullptr;
  (*net)[1].crash();
  (*net)[1].boot();
  for (int i = 0; i < 10 && received(1).empty(); ++i) {
    send(0, "after");
    run();
  }
  ASSERT_FALSE(received(1).empty());
  const auto life = [this] {
    const Shepherd inside((*net)[0].monitor());
    return (*net)[0].host().peers().boot_id(net->address(1));
  };
  const BootId present = life();
  inject(0, held);
  EXPECT_EQ(life(), present);
  received(1).clear();
  send(0, "on");
  run();
  EXPECT_EQ(received(1), Texts{"on"});
}

TEST_P(AuthBy, whatever_the_wire_does_nothing_arrives_twice_or_changed_and_something_arrives) {
  std::vector<std::uint64_t> seeds(8);
  std::iota(seeds.begin(), seeds.end(), testing_lrpc::test_seed());
  if (testing_lrpc::long_tests())
    for (std::uint64_t seed = 1; seed <= 30; ++seed) seeds.push_back(seed);
  for (const std::uint64_t seed : seeds) {
    SCOPED_TRACE("LRPC_TEST_SEED=" + std::to_string(seed));
    SimOptions sim;
    sim.seed = seed;
    sim.link.loss = 0.2;
    sim.link.duplicate = 0.2;
    sim.link.reorder = 0.2;
    sim.link.corrupt = 0.02;
    sim.link.jitter = 100us;
    Options options;
    options.set("rekey_messages", "20");
    start(sim, options);
    SessionRef a = open(0, 1);
    SessionRef b = open(1, 0);
    std::mt19937_64 random(seed);
    Texts sent[2];
    for (int i = 0; i < 300; ++i) {
      const std::size_t from = random() % 2;
      sent[from].push_back(std::to_string(i) + std::string(random() % 1200, 'x'));
      ASSERT_EQ(push(from, from == 0 ? a : b, sent[from].back()), Errc::ok);
      run(Duration(random() % 5'000'000));
    }
    run(20s);
    for (const std::size_t from : {0U, 1U}) {
      std::multiset<std::string> got(received(1 - from).begin(), received(1 - from).end());
      for (const std::string& text : sent[from]) {
        EXPECT_LE(got.count(text), 1U);
        got.erase(text);
      }
      EXPECT_TRUE(got.empty()) << "something arrived that was not sent";
      EXPECT_GE(received(1 - from).size(), sent[from].size() / 3);
    }
    // On a faultless wire everything arrives again.
    net->world.set_links({});
    run(10s);
    ASSERT_EQ(push(0, a, "the end"), Errc::ok);
    ASSERT_EQ(push(1, b, "the end"), Errc::ok);
    run(10s);
    EXPECT_EQ(received(0).back(), "the end");
    EXPECT_EQ(received(1).back(), "the end");
    a = b = {};  // before the graph that they belong to
    net.reset();
  }
}

}  // namespace
}  // namespace lrpc::netrpc::auth
