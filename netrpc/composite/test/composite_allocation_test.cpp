// In the steady state a message through a composite protocol allocates nothing: no item, no raise, no timer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "netrpc/composite/composite.h"
#include "netrpc/composite/test/several.h"
#include "netrpc/sim/test/counted_allocations.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

constexpr EventName<ItemRef, int> kTimeout{"Timeout"};

/// Uses every facility for each message: items, raises and timers.
class Busy final : public MicroProtocol {
 public:
  explicit Busy(MicroParts& given)
      : parts_(given), number_(given.attribute<int>("number", Visibility::of_all, InHeader::yes)) {
    bit_ = given.send_bit();
    const auto* const timeout = given.own(kTimeout, [](const ItemRef&, int) {});
    parts_.handle(kMessageInsertedIntoBag, [this, timeout](const ItemRef& item) {
      number_.set(*item, 1);
      (void)parts_.events().set_timer(*timeout, 1us, Repeat::once, item, 2);
      parts_.events().cancel_timer(parts_.events().set_timer(*timeout, 1s, Repeat::periodic, item, 3));
      parts_.events().raise(*timeout, Raise::asynchronous, item, 4);
      parts_.bag().set_send_bit(bit_, item);
    });
  }

 private:
  MicroParts parts_;
  Attribute<int> number_;
  SendBit bit_;
};

class Counter final : public Protocol {
 public:
  explicit Counter(Host& host) : Protocol(host, "counter") {}
  Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override { return Errc::ok; }
  void demux(Session& /*lower*/, Message /*message*/) noexcept override { ++received; }
  std::uint64_t received = 0;
};

void expect_none(const std::vector<Part>& parts) {
  SimHosts net(2);
  Framework* layer[2] = {};
  Counter* top[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    {
      const Shepherd inside(net[i].monitor());
      auto made = Framework::make(net[i].host(), "cp", net[i].ip(), parts);
      ASSERT_TRUE(made) << made.error().message();
      layer[i] = made->get();
      net[i].own(*std::move(made));
    }
    top[i] = &net[i].add<Counter>();
    const Shepherd inside(net[i].monitor());
    ASSERT_TRUE(layer[i]->open_enable(*top[i], SimHosts::anyone()));
  }
  SessionRef session;
  {
    const Shepherd inside(net[0].monitor());
    session = *layer[0]->open(*top[0], net.to(1));
  }
  const auto send = [&](int messages) {
    for (int i = 0; i < messages; ++i) {
      {
        const Shepherd inside(net[0].monitor());
        EXPECT_EQ(session->push(net.message(0, "x")), Errc::ok);
      }
      net.world.run_for(100us);
    }
  };
  send(1000);
  const std::uint64_t before = allocations_so_far();
  const std::uint64_t received = top[1]->received;
  send(1000);
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_GT(top[1]->received, received + 900);
  session = {};
}

TEST(CompositeAllocations, there_are_none_in_the_steady_state) {
  MicroKind kind;
  kind.name = "BUSY";
  kind.imports = {kMessageInsertedIntoBag.name};
  kind.make = make_micro<Busy>;
  expect_none({{kind}});
}

TEST(CompositeAllocations, there_are_none_in_the_steady_state_of_the_suite) {
  std::vector<Part> parts;
  for (MicroKind& kind : datagram_kinds()) parts.push_back({std::move(kind)});
  expect_none(parts);
}

/// Counts successful calls and replies.
class Answered final : public Transaction {
 public:
  void completed(Errc outcome, Message /*reply*/) noexcept override { ok += outcome == Errc::ok ? 1 : 0; }
  void collated(HostAddress /*member*/, Errc outcome, Message /*reply*/) noexcept override {
    replies += outcome == Errc::ok ? 1 : 0;
  }
  int ok = 0;
  int replies = 0;
};

TEST(CompositeAllocations, there_are_none_in_the_steady_state_of_calls_to_a_group) {
  Several group(3, [] {
    std::vector<Part> parts = {{grpc_kind()}, {sync_kind()}, {all_accept_kind()}, {bounded_kind()}};
    parts.back().options.set("limit", "10ms");
    for (MicroKind& kind : datagram_kinds()) parts.push_back({std::move(kind)});
    return parts;
  });
  Answered calls[3];
  const auto call = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (Answered& one : calls) {
        const Shepherd inside(group.net[0].monitor());
        group.session->call(group.net.message(0, "x"), one, 1s);
      }
      group.run(100us);
    }
  };
  for (std::size_t i = 1; i <= 3; ++i) group.servers[i]->notes = false;
  call(1000);
  const std::uint64_t before = allocations_so_far();
  call(1000);
  EXPECT_EQ(allocations_so_far(), before);
  group.run(1s);
  for (const Answered& one : calls) {
    EXPECT_EQ(one.ok, 2000);
    EXPECT_EQ(one.replies, 6000);
  }
}

/// All answer a push, but there is no memory for an item in which an answer could go up.
TEST(CompositeWithoutItems, a_push_whose_answers_cannot_go_up_fails) {
  constexpr std::size_t kServers = 3;
  Several group(kServers, [] { return std::vector<Part>{{grpc_kind()}, {async_kind()}, {all_accept_kind()}}; });
  EXPECT_EQ(group.push("warm"), Errc::ok);
  group.run();
  ASSERT_EQ(group.client->received.size(), kServers);
  group.client->forget();
  std::vector<ItemRef> items;
  deny_malloc(true);
  {
    const Shepherd inside(group.net[0].monitor());
    while (ItemRef one = group.layers[0]->bag().new_item(group.session, Direction::up, Message()))
      items.push_back(std::move(one));
    for (std::size_t left = 0; left < kServers && !items.empty(); ++left) items.pop_back();
  }
  const Errc pushed = group.push("without");
  group.run();
  deny_malloc(false);
  EXPECT_EQ(pushed, Errc::ok);
  EXPECT_TRUE(group.client->received.empty());
  EXPECT_EQ(group.client->failed, std::vector<Errc>{Errc::call_lost});
  EXPECT_EQ(group.state(0), 0U);
  const Shepherd inside(group.net[0].monitor());
  items.clear();
}

/// The micro-protocols besides GRPC, BOUNDED, NUMBER, UNIQUE, FIFO, ACK and MEMBERSHIP.
struct Others {
  std::vector<MicroKind> kinds;
  bool late = false;  ///< Servers delay each answer until the next request.
};

/// Runs rounds of three calls or pushes to three servers, until one set of rounds allocates nothing: threads may grow
/// late.
void expect_none_of_calls(const Others& others, std::size_t threads) {
  const bool push = std::ranges::any_of(others.kinds, [](const MicroKind& kind) { return kind.name == "ASYNC"; });
  Several group(
      3,
      [&] {
        std::vector<Part> parts = {{grpc_kind()}, part(bounded_kind(), {{"limit", "100ms"}})};
        for (MicroKind& kind : datagram_kinds()) parts.push_back({std::move(kind)});
        for (const MicroKind& kind : others.kinds)
          parts.push_back(kind.name == "STILL_WORKING" ? part(kind, {{"interval", "1ms"}}) : part(kind));
        return parts;
      },
      {}, threads);
  for (std::size_t i = 1; i <= 3; ++i) {
    group.servers[i]->notes = false;
    group.servers[i]->late = others.late;
  }
  group.client->notes = false;
  Answered calls[3];
  const auto round = [&] {
    for (Answered& one : calls) {
      const Shepherd inside(group.net[0].monitor());
      if (push)
        EXPECT_EQ(group.session->push(group.net.message(0, "x")), Errc::ok);
      else
        group.session->call(group.net.message(0, "x"), one, 1s);
    }
    group.run(500us);
  };
  const auto answers = [&] { return group.client->replies + calls[0].ok + calls[1].ok + calls[2].ok; };
  const int rounds = threads == 0 ? 300 : 100;
  std::uint64_t fewest = ~std::uint64_t{0};
  for (int tries = 0; tries < 10 && fewest != 0; ++tries) {
    const std::uint64_t before = allocations_so_far();
    const int answered = answers();
    for (int i = 0; i < rounds; ++i) round();
    fewest = std::min(fewest, allocations_so_far() - before);
    EXPECT_GT(answers(), answered + rounds);
  }
  EXPECT_EQ(fewest, 0U) << "in " << rounds << " rounds";
  group.run(1s);
}

/// Each micro-protocol is in at least one of these.
constexpr std::size_t kGraphs = 5;
std::array<Others, kGraphs> whichever() {
  return {
      {{{sync_kind(), one_accept_kind(), still_working_kind(), reply_order_kind(), avoid_interference_kind()}, true},
       {{sync_kind(), majority_kind(), still_working_kind(), reply_order_kind(), terminate_orphans_kind()}, true},
       {{sync_kind(), all_accept_kind(), avoid_interference_kind(), atomic_kind()}},
       {{async_kind(), one_accept_kind(), still_working_kind(), reply_order_kind(), terminate_orphans_kind()}, true},
       {{async_kind(), majority_kind(), avoid_interference_kind(), atomic_kind()}}}};
}

class AllocationsOfCalls : public testing::TestWithParam<std::size_t> {};

TEST_P(AllocationsOfCalls, are_none_in_the_steady_state_whichever_micro_protocols_are_there) {
  const Others others = whichever()[GetParam()];
  std::string names;
  for (const MicroKind& kind : others.kinds) names += kind.name + " ";
  for (const std::size_t threads : {0U, 3U}) {
    SCOPED_TRACE(names + std::to_string(threads) + " threads");
    expect_none_of_calls(others, threads);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, AllocationsOfCalls, testing::Range(std::size_t{0}, kGraphs));

}  // namespace
}  // namespace lrpc::netrpc::composite
