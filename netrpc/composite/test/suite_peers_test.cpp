// The micro-protocols for datagrams and difficult peers: rebooted, forged, refusing, late or silent ones.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/test/two.h"
#include "netrpc/protocols/channel/test/packet_wire.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

/// FIFO waits for nothing that was received in a life before, whether the next number is beyond its `hold` or not.
TEST(CompositeSuite, hosts_that_begin_again_are_heard) {
  for (const auto& [sender, before] : {std::pair(true, 500), std::pair(false, 500), std::pair(false, 100)}) {
    std::vector<Framework*> layers(2);
    SimHosts net(2);
    std::vector<std::string> received;
    class Notes final : public Protocol {
     public:
      Notes(Host& host, std::vector<std::string>& into) : Protocol(host, "notes"), into_(into) {}
      Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override { return Errc::ok; }
      void demux(Session& /*lower*/, Message message) noexcept override { into_.push_back(text_of(message)); }

     private:
      std::vector<std::string>& into_;
    };
    std::vector<Notes*> notes(2);
    for (std::size_t i = 0; i < 2; ++i) {
      net[i].on_boot([&, i](SimHost& host) {
        auto made = Framework::make(host.host(), "cp", host.ip(),
                                    {part(number_kind()), part(unique_kind()), part(fifo_kind()), part(ack_kind())});
        ASSERT_TRUE(made) << made.error().message();
        layers[i] = made->get();
        host.own(*std::move(made));
        notes[i] = &host.add<Notes>(received);
        ASSERT_TRUE(layers[i]->open_enable(*notes[i], SimHosts::anyone()));
      });
    }
    const auto send = [&](int from, int to) {
      for (int i = from; i < to; ++i) {
        {
          const Shepherd inside(net[0].monitor());
          const SessionRef session = *layers[0]->open(*notes[0], net.to(1));
          EXPECT_EQ(session->push(net.message(0, std::to_string(i))), Errc::ok);
        }
        net.world.run_for(1ms);
      }
      net.world.run_for(100ms);
    };
    send(0, before);
    net[sender ? 0 : 1].crash();
    net[sender ? 0 : 1].boot();
    send(before, before + 100);
    std::vector<std::string> all;
    for (int i = 0; i < before + 100; ++i) all.push_back(std::to_string(i));
    EXPECT_EQ(received, all) << (sender ? "the sender" : "the receiver");
  }
}

TEST(CompositeSuite, a_push_that_is_refused_leaves_no_gap) {
  Two two([](std::size_t) {
    return std::vector<Part>{part(number_kind()), part(ack_kind(), {{"window", "2"}}), part(fifo_kind())};
  });
  EXPECT_EQ(two.push("a"), Errc::ok);
  EXPECT_EQ(two.push("b"), Errc::ok);
  EXPECT_EQ(two.push("c"), Errc::limit_reached);
  EXPECT_EQ(two.push(std::string(100'000, 'x')), Errc::limit_reached);
  two.run();
  EXPECT_EQ(two.push(std::string(100'000, 'x')), Errc::message_too_long);
  EXPECT_EQ(two.push("d"), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[1]->received, (std::vector<std::string>{"a", "b", "d"}));
  EXPECT_EQ(two.layer[0]->events().timers(), 0U);  // the refused message is not retransmitted
}

TEST(CompositeSuite, a_message_for_which_many_wait_has_room_when_it_comes) {
  Two two([](std::size_t) {
    return std::vector<Part>{part(number_kind()), part(unique_kind()), part(fifo_kind()), part(ack_kind())};
  });
  const auto message = [](int number) { return std::to_string(number) + std::string(60'000, '.'); };
  std::vector<std::string> all;
  for (int i = 0; i < 100; ++i) {
    two.net.world.set_links({.loss = i == 0 ? 1.0 : 0.0});
    ASSERT_EQ(two.push(message(i)), Errc::ok) << i;
    all.push_back(message(i));
  }
  two.net.world.run_for(2s);
  EXPECT_EQ(two.sink[1]->received.size(), all.size());
  EXPECT_TRUE(two.sink[1]->received == all);
}

TEST(CompositeSuite, patience_begins_anew_with_each_gap) {
  // 1 arrives 90 ms late, and 3 arrives 80 ms after that.
  Two two([](std::size_t) {
    return std::vector<Part>{part(number_kind()), part(fifo_kind(), {{"patience", "100ms"}})};
  });
  std::vector<SessionRef> slow;
  const auto push_with = [&](std::string_view text, Duration latency) {
    SimLink link;
    link.latency = latency;
    two.net.world.set_links(link);
    EXPECT_EQ(two.push(text), Errc::ok);
  };
  push_with("1", 90ms);
  push_with("2", 10us);
  push_with("3", 170ms);
  push_with("4", 10us);
  two.net.world.run_for(10s);
  EXPECT_EQ(two.sink[1]->received, (std::vector<std::string>{"1", "2", "3", "4"}));
}

TEST(CompositeSuite, one_forged_message_does_not_cut_a_peer_off) {
  // The second host's composition is empty: it sees and forges headers.
  Two two([](std::size_t host) {
    return host == 1 ? std::vector<Part>{}
                     : std::vector<Part>{part(number_kind()), part(unique_kind()), part(fifo_kind())};
  });
  two.sink[1]->echo = true;
  EXPECT_EQ(two.push("first"), Errc::ok);
  two.run();
  ASSERT_EQ(two.sink[0]->received.size(), 1U);
  const std::string header = two.sink[1]->received.front().substr(0, 14);
  const auto forge = [&](std::uint8_t stream, std::uint8_t number) {
    std::string message = header + "forged";
    message[9] = static_cast<char>(number);
    message[13] = static_cast<char>(message[13] ^ stream);
    const Shepherd inside(two.net[1].monitor());
    EXPECT_EQ(two.sink[1]->sessions.front()->push(two.net.message(1, message)), Errc::ok);
  };
  for (std::uint8_t stream = 1; stream < 200; ++stream) forge(stream, 200);
  two.run();
  two.sink[0]->received.clear();
  EXPECT_EQ(two.push("second"), Errc::ok);
  EXPECT_EQ(two.push("third"), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[0]->received, (std::vector<std::string>{"second", "third"}));
}

TEST(CompositeSuite, what_a_receiver_remembers_outlives_a_pause_of_its_host_and_is_forgotten_later) {
  struct State {
    [[nodiscard]] static bool busy() noexcept { return false; }
  };
  PacketWire wire(1);
  Host& host = wire[0].host;
  PeerTable<Peer, State> received(host, 8, 60s, true);
  PeerTable<Peer, State> sent(host, 8, 60s, false);
  {
    const Shepherd inside(host.monitor());
    EXPECT_NE(received.find_or_make(Peer()), nullptr);
    EXPECT_NE(sent.find_or_make(Peer()), nullptr);
  }
  wire.pass(60s, 1s);
  wire.stand_still(10min);
  EXPECT_EQ(received.size(), 1U);
  EXPECT_EQ(sent.size(), 0U) << "its receiver has forgotten it, too";
  wire.pass(60s, 1s);
  EXPECT_EQ(received.size(), 0U);
}

TEST(CompositeSuite, silent_members_give_way_to_new_ones) {
  SimHosts net(4);
  std::vector<std::string> changes;
  Framework* layers[4] = {};
  SinkProtocol* sinks[4] = {};
  for (std::size_t i = 0; i < 4; ++i) {
    const Shepherd inside(net[i].monitor());
    MicroKind hears = kind_of("HEARS", {kMembershipChange.name}, [&changes, i](MicroParts& parts) {
      parts.handle(kMembershipChange, [&changes, i](const Peer& peer, MembershipChange change) {
        if (i == 0) changes.push_back((change == MembershipChange::joined ? "+" : "-") + to_string(peer.host));
      });
    });
    auto made = Framework::make(net[i].host(), "cp", net[i].ip(),
                                {part(number_kind()),
                                 part(ack_kind()),
                                 {std::move(hears)},
                                 part(membership_kind(), {{"members", "2"}, {"idle", "1s"}})});
    ASSERT_TRUE(made) << made.error().message();
    layers[i] = made->get();
    net[i].own(*std::move(made));
    sinks[i] = &net[i].add<SinkProtocol>();
    ASSERT_TRUE(layers[i]->open_enable(*sinks[i], SimHosts::anyone()));
  }
  const auto hears_of = [&](std::size_t i) {
    {
      const Shepherd inside(net[i].monitor());
      const SessionRef session = *layers[i]->open(*sinks[i], net.to(0));
      EXPECT_EQ(session->push(net.message(i, "here")), Errc::ok);
    }
    net.world.run_for(300ms);
  };
  for (const std::size_t i : {1U, 2U, 3U, 2U, 2U, 2U, 3U}) hears_of(i);
  EXPECT_EQ(changes, (std::vector<std::string>{"+10.0.0.2", "+10.0.0.3", "-10.0.0.2", "+10.0.0.4"}));
  for (SinkProtocol* const one : sinks) one->sessions.clear();
}

}  // namespace
}  // namespace lrpc::netrpc::composite
