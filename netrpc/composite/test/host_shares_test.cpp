// One host cannot take what micro-protocols have for all hosts together, however many flows it sends.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/test/several.h"
#include "netrpc/composite/test/two.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

/// The first host has `parts`. The second one forges headers of NUMBER, the third is honest.
struct Forged {
  explicit Forged(const std::vector<Part>& parts) {
    for (std::size_t i = 0; i < 3; ++i) {
      const Shepherd inside(net[i].monitor());
      auto made = Framework::make(net[i].host(), "cp", net[i].ip(),
                                  i == 0   ? parts
                                  : i == 1 ? std::vector<Part>{}
                                           : std::vector<Part>{part(number_kind())});
      EXPECT_TRUE(made) << made.error().message();
      layers[i] = made->get();
      net[i].own(*std::move(made));
      sinks[i] = &net[i].add<SinkProtocol>();
      EXPECT_TRUE(layers[i]->open_enable(*sinks[i], SimHosts::anyone()));
    }
    send(2, 1, "a message to see its header");
    header = sinks[1]->received.at(0).substr(0, 14);
  }
  ~Forged() {
    for (SinkProtocol* const one : sinks) one->sessions.clear();
  }
  void send(std::size_t from, std::size_t to, const std::string& text) {
    {
      const Shepherd inside(net[from].monitor());
      const SessionRef session = *layers[from]->open(*sinks[from], net.to(to));
      EXPECT_EQ(session->push(Message::copy_of_long(net[from].pool(), std::as_bytes(std::span(text)))), Errc::ok);
    }
    net.world.run_for(1ms);
  }
  /// Sends `messages` forged messages, each of another flow.
  void forge(int messages, char number, const std::string& text) {
    for (int i = 0; i < messages; ++i) {
      header[9] = number;
      header[13] = static_cast<char>(i);
      send(1, 0, header + text);
    }
  }
  [[nodiscard]] bool honest_is_heard() {
    send(2, 0, "honest");
    return std::ranges::find(sinks[0]->received, "honest") != sinks[0]->received.end();
  }

  SimHosts net{3};
  Framework* layers[3] = {};
  SinkProtocol* sinks[3] = {};
  std::string header;
};

TEST(CompositeShares, a_host_does_not_take_all_flows) {
  for (const auto kind : {unique_kind, fifo_kind}) {
    Forged forged({part(number_kind()), part(kind(), {{"peers", "16"}})});
    forged.forge(100, 1, "one of many");
    EXPECT_EQ(forged.sinks[0]->received.size(), 7U);
    EXPECT_TRUE(forged.honest_is_heard());
  }
}

TEST(CompositeShares, a_host_does_not_take_all_that_fifo_may_hold) {
  Forged forged({part(number_kind()), part(fifo_kind())});
  forged.forge(200, 2, std::string(60'000, 'x'));
  forged.forge(200, 3, std::string(1'000, 'x'));  // the room left is too small for one of the earlier messages
  forged.forge(200, 4, "x");
  EXPECT_EQ(forged.sinks[0]->received.size(), 0U) << "the first one of each flow is missing";
  EXPECT_TRUE(forged.honest_is_heard());
}

/// ACK keeps 32 replies here until they are acknowledged; a host's share of these is 14.
TEST(CompositeShares, a_host_does_not_take_all_replies_that_are_kept) {
  Several one(1, [] {
    return std::vector<Part>{part(grpc_kind()),   part(sync_kind()),   part(one_accept_kind()),
                             part(number_kind()), part(unique_kind()), part(ack_kind(), {{"most", "8"}})};
  });
  one.servers[1]->keeps = true;
  std::vector<GroupOutcome> calls(20);
  for (GroupOutcome& call : calls) {
    one.call("question", call, 10s);
    one.run(1ms);  // the request is acknowledged
  }
  ASSERT_EQ(one.servers[1]->kept.size(), calls.size());
  ASSERT_EQ(one.layers[1]->events().timers(), 0U);
  one.net.world.set_links({.loss = 1});
  one.answer(1);
  EXPECT_EQ(one.layers[1]->events().timers(), 14U) << "replies that are kept, to be sent again";
  one.net.world.set_links({});
  one.run(20s);
  EXPECT_EQ(std::ranges::count(calls, Errc::ok, &GroupOutcome::outcome), 14);
}

/// ACK keeps 64 messages until they are acknowledged, or 32 for peers that never answered; 16 per host (the window).
TEST(CompositeShares, silent_hosts_do_not_take_all_messages_that_are_kept) {
  constexpr std::size_t kSilent = 4;
  constexpr std::size_t kLast = kSilent + 1;
  for (const bool known : {true, false}) {
    SimHosts net(kLast + 1);
    Framework* layers[kLast + 1] = {};
    SinkProtocol* sinks[kLast + 1] = {};
    for (std::size_t i = 0; i <= kLast; ++i) {
      const Shepherd inside(net[i].monitor());
      auto made = Framework::make(net[i].host(), "cp", net[i].ip(),
                                  {part(number_kind()), part(ack_kind(), {{"window", "16"}, {"most", "64"}})});
      ASSERT_TRUE(made) << made.error().message();
      layers[i] = made->get();
      net[i].own(*std::move(made));
      sinks[i] = &net[i].add<SinkProtocol>();
      ASSERT_TRUE(layers[i]->open_enable(*sinks[i], SimHosts::anyone()));
    }
    const auto pushed = [&](std::size_t to, int messages) {
      const Shepherd inside(net[0].monitor());
      const SessionRef session = *layers[0]->open(*sinks[0], net.to(to));
      int count = 0;
      for (int i = 0; i < messages; ++i) count += session->push(net.message(0, "this")) == Errc::ok ? 1 : 0;
      return count;
    };
    for (std::size_t i = 1; known && i <= kSilent; ++i) EXPECT_EQ(pushed(i, 1), 1);
    net.world.run_for(100ms);
    ASSERT_EQ(layers[0]->events().timers(), 0U);
    net.world.set_links({.loss = 1});
    int kept = 0;
    for (std::size_t i = 1; i <= kSilent; ++i) kept += pushed(i, 20);
    EXPECT_EQ(kept, known ? 16 + 16 + 12 + 6 : 14 + 7 + 3 + 2);
    EXPECT_EQ(pushed(kLast, 1), 1) << "to one that has not answered either";
    net.world.set_links({});
    net.world.run_for(10s);
    EXPECT_EQ(sinks[kLast]->received.size(), 1U);
    EXPECT_EQ(layers[0]->events().timers(), 0U);
    for (SinkProtocol* const one : sinks) one->sessions.clear();
  }
}

/// Calls as the protocol `high` on host `from`, and waits until the request has arrived.
void ask(Several& all, std::size_t from, Protocol& high, const ParticipantSet& to, GroupOutcome& one) {
  {
    const Shepherd inside(all.net[from].monitor());
    const SessionRef session = *all.layers[from]->open(high, to);
    session->call(all.net.message(from, "question"), one, 10s);
  }
  all.run(1ms);
}

/// The host acts as two clients: two protocol numbers, like two ports.
TEST(CompositeShares, a_host_does_not_take_all_places_of_atomic) {
  Several two(2, [] {
    return std::vector<Part>{part(grpc_kind()), part(sync_kind()), part(one_accept_kind()),
                             part(atomic_kind(), {{"hold", "8"}})};
  });
  ParticipantSet other = two.net.to(2);
  other.protocol += 1;
  {
    const Shepherd inside(two.net[2].monitor());
    ASSERT_TRUE(two.layers[2]->open_enable(*two.servers[2], SimHosts::anyone(other.protocol)));
  }
  two.servers[2]->keeps = true;
  GroupOutcome calls[20];
  GroupOutcome last;
  for (std::size_t i = 0; i < 20; ++i) ask(two, 0, *two.client, i % 2 == 0 ? other : two.net.to(2), calls[i]);
  ask(two, 1, *two.servers[1], two.net.to(2), last);
  two.servers[2]->keeps = false;
  two.answer(2);
  two.run(20s);
  EXPECT_EQ(last.outcome, Errc::ok);
  EXPECT_EQ(std::ranges::count(calls, Errc::ok, &GroupOutcome::outcome), 4) << "one, and three that waited";
}

TEST(CompositeShares, two_hosts_do_not_take_all_places_of_atomic) {
  constexpr std::size_t kServer = 3;
  Several three(kServer, [] {
    return std::vector<Part>{part(grpc_kind()), part(sync_kind()), part(one_accept_kind()),
                             part(atomic_kind(), {{"hold", "16"}})};
  });
  three.servers[kServer]->keeps = true;
  GroupOutcome calls[2][20];
  GroupOutcome last;
  for (GroupOutcome& one : calls[0]) ask(three, 0, *three.client, three.net.to(kServer), one);
  for (GroupOutcome& one : calls[1]) ask(three, 1, *three.servers[1], three.net.to(kServer), one);
  ask(three, 2, *three.servers[2], three.net.to(kServer), last);
  three.servers[kServer]->keeps = false;
  three.answer(kServer);
  three.run(20s);
  EXPECT_EQ(last.outcome, Errc::ok);
  EXPECT_EQ(std::ranges::count(calls[0], Errc::ok, &GroupOutcome::outcome), 8) << "one, and seven that waited";
  EXPECT_EQ(std::ranges::count(calls[1], Errc::ok, &GroupOutcome::outcome), 3) << "that waited";
}

/// A host's new life makes requests that wait for its earlier life, as several clients (protocol numbers).
TEST(CompositeShares, a_host_does_not_take_all_buffers_by_requests_that_wait_for_its_life_before) {
  Several two(2, [] {
    return std::vector<Part>{part(grpc_kind()), part(sync_kind()), part(one_accept_kind()),
                             part(avoid_interference_kind())};
  });
  constexpr ProtocolNumber kClients = 5;
  ParticipantSet to[kClients];
  for (ProtocolNumber i = 0; i < kClients; ++i) {
    to[i] = two.net.to(2);
    to[i].protocol += i;
    const Shepherd inside(two.net[2].monitor());
    ASSERT_TRUE(two.layers[2]->open_enable(*two.servers[2], SimHosts::anyone(to[i].protocol)));
  }
  const auto call = [&](std::size_t from, Protocol& high, const ParticipantSet& where, GroupOutcome& one,
                        const std::string& text) {
    {
      const Shepherd inside(two.net[from].monitor());
      const SessionRef session = *two.layers[from]->open(high, where);
      session->call(Message::copy_of_long(two.net[from].pool(), std::as_bytes(std::span(text))), one, kNoLimit);
    }
    two.run(1ms);
  };
  std::vector<GroupOutcome> calls(kClients * 300);
  std::vector<GroupOutcome> before(kClients);
  GroupOutcome last;
  two.servers[2]->keeps = true;
  for (ProtocolNumber i = 0; i < kClients; ++i) call(0, *two.client, to[i], before[i], "before");
  ASSERT_EQ(two.servers[2]->kept.size(), kClients);
  two.next_life();
  two.servers[2]->keeps = false;
  for (std::size_t i = 0; i < calls.size(); ++i)
    call(0, *two.client, to[i % kClients], calls[i], std::string(60'000, 'x'));
  call(1, *two.servers[1], to[0], last, std::string(60'000, 'y'));
  EXPECT_EQ(last.outcome, Errc::ok);
  two.answer(2);
  two.run();
  EXPECT_GT(std::ranges::count(calls, Errc::ok, &GroupOutcome::outcome), 50) << "those that found room";
  EXPECT_EQ(two.layers[2]->bag().count(), 0U);
}

}  // namespace
}  // namespace lrpc::netrpc::composite
