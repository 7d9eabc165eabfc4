// Messages that a micro-protocol has no room for, and duplicates: how micro-protocols that remember messages treat
// them, in whatever order the handlers run.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/test/several.h"
#include "netrpc/composite/test/two.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kOrders = 12;  ///< Seeds: each draws an order of the handlers.
/// Handler threads. With two, one handles what arrives; one of its handlers may wait in the other thread meanwhile.
constexpr std::size_t kThreads[] = {0, 2};

/// The first host has `kind` (UNIQUE, for example), and a micro-protocol that refuses messages while `full`. The second
/// host sends it messages whose numbers the test chooses.
struct Repeating {
  Repeating(std::uint64_t seed, std::size_t threads, MicroKind (*kind)() = unique_kind)
      : two(parts(kind), options(seed), threads) {
    EXPECT_EQ(two.push("a message to see its header"), Errc::ok);
    two.run();
    header = two.sink[1]->received.at(0).substr(0, 14);
  }
  [[nodiscard]] std::function<std::vector<Part>(std::size_t)> parts(MicroKind (*kind)()) {
    return [this, kind](std::size_t host) {
      if (host == 1) return std::vector<Part>{};
      MicroKind has_room = kind_of("HAS_ROOM", kInsertion, [this](MicroParts& made) {
        made.handle(kMessageInsertedIntoBag, [this, bag = &made.bag()](const ItemRef& item) {
          if (full && item->direction == Direction::up) bag->erase(item, Errc::limit_reached);
        });
      });
      return std::vector<Part>{part(number_kind()), part(kind()), part(std::move(has_room))};
    };
  }
  [[nodiscard]] static SimOptions options(std::uint64_t seed) {
    SimOptions made;
    made.seed = seed;
    return made;
  }
  void send(char number) {
    std::string message = header + "this";
    message[9] = number;
    {
      const Shepherd inside(two.net[1].monitor());
      EXPECT_EQ(two.sink[1]->sessions.front()->push(two.net.message(1, message)), Errc::ok);
    }
    two.run();
  }
  [[nodiscard]] std::size_t received() const { return two.sink[0]->received.size(); }

  bool full = false;
  Two two;
  std::string header;
};

TEST(CompositeWithoutRoom, unique_remembers_a_message_whose_repetition_finds_none) {
  for (const std::size_t threads : kThreads) {
    for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
      Repeating to(seed, threads);
      to.send(1);
      EXPECT_EQ(to.received(), 1U);
      to.full = true;
      to.send(1);
      to.full = false;
      to.send(1);
      EXPECT_EQ(to.received(), 1U) << "seed " << seed << ", " << threads << " threads";
    }
  }
}

TEST(CompositeWithoutRoom, unique_lets_a_message_that_found_none_come_again) {
  for (const std::size_t threads : kThreads) {
    for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
      Repeating to(seed, threads);
      to.full = true;
      to.send(1);
      EXPECT_EQ(to.received(), 0U);
      to.full = false;
      to.send(1);
      EXPECT_EQ(to.received(), 1U) << "seed " << seed << ", " << threads << " threads";
      to.send(1);
      EXPECT_EQ(to.received(), 1U) << "seed " << seed << ", " << threads << " threads";
    }
  }
}

TEST(CompositeWithoutRoom, fifo_waits_until_a_message_that_found_none_comes_again) {
  for (const std::size_t threads : kThreads) {
    for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
      Repeating to(seed, threads, fifo_kind);
      to.full = true;
      to.send(1);
      to.full = false;
      to.send(2);
      EXPECT_EQ(to.received(), 0U) << "seed " << seed << ", " << threads << " threads";
      to.send(1);
      EXPECT_EQ(to.received(), 2U) << "seed " << seed << ", " << threads << " threads";
    }
  }
}

TEST(CompositeWithoutRoom, number_counts_no_message_that_is_deleted_at_its_insertion) {
  for (const std::size_t threads : kThreads) {
    for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
      const auto parts = [](std::size_t /*host*/) {
        MicroKind censor = kind_of("CENSOR", kInsertion, [](MicroParts& made) {
          made.handle(kMessageInsertedIntoBag, [bag = &made.bag()](const ItemRef& item) {
            if (item->message.size() == 1) bag->erase(item);
          });
        });
        return std::vector<Part>{part(number_kind()), part(fifo_kind()), part(std::move(censor))};
      };
      Two two(parts, Repeating::options(seed), threads);
      for (const char* text : {"first", "-", "second"}) EXPECT_EQ(two.push(text), Errc::ok);
      two.run();
      EXPECT_EQ(two.sink[1]->received, (std::vector<std::string>{"first", "second"}))
          << "seed " << seed << ", " << threads << " threads";
    }
  }
}

TEST(CompositeWithoutRoom, ack_acknowledges_no_message_that_found_none) {
  for (const std::size_t threads : kThreads) {
    for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(threads) + " threads");
      bool full = true;
      const auto parts = [&full](std::size_t host) {
        MicroKind has_room = kind_of("HAS_ROOM", kInsertion, [&full, host](MicroParts& made) {
          made.handle(kMessageInsertedIntoBag, [&full, host, bag = &made.bag()](const ItemRef& item) {
            if (full && host == 1 && item->direction == Direction::up) bag->erase(item, Errc::limit_reached);
          });
        });
        return std::vector<Part>{part(number_kind()), part(ack_kind()), part(std::move(has_room))};
      };
      Two two(parts, Repeating::options(seed), threads);
      EXPECT_EQ(two.push("once"), Errc::ok);
      two.run();
      EXPECT_EQ(two.layer[0]->events().timers(), 1U);
      full = false;
      two.net.world.run_for(1s);
      EXPECT_EQ(two.layer[0]->events().timers(), 0U);
      EXPECT_EQ(two.sink[1]->received, std::vector<std::string>{"once"});
    }
  }
}

/// The server handles one request of a client at a time. Retransmissions find no room; they arrive before and after the
/// answer.
TEST(CompositeWithoutRoom, a_request_is_executed_once_although_its_repetitions_find_none) {
  for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
    SimOptions options = Repeating::options(seed);
    options.link.latency = 5ms;
    Several one(
        1,
        [] {
          return std::vector<Part>{part(grpc_kind()),
                                   part(sync_kind()),
                                   part(one_accept_kind()),
                                   part(number_kind()),
                                   part(unique_kind()),
                                   part(ack_kind(), {{"interval", "1ms"}}),
                                   part(terminate_orphans_kind(), {{"hold", "1"}})};
        },
        options);
    GroupOutcome call;
    one.servers[1]->keeps = true;
    one.call("once", call);
    one.run(7ms);
    ASSERT_EQ(one.servers[1]->kept.size(), 1U);
    one.answer(1);
    one.run(1s);
    EXPECT_EQ(call.outcome, Errc::ok);
    EXPECT_EQ(one.servers[1]->executed.size(), 1U) << "seed " << seed;
  }
}

/// One host may take half of what remains of 4,096 after an eighth is set aside: 1,792. Further requests are not
/// acknowledged.
TEST(CompositeWithoutRoom, requests_that_find_no_place_come_again) {
  Several two(2, [] {
    return std::vector<Part>{
        part(grpc_kind()),
        part(sync_kind()),
        part(one_accept_kind()),
        part(number_kind()),
        part(unique_kind()),
        part(ack_kind(), {{"window", "1000"}, {"most", "4096"}, {"memory", "1000000000"}, {"tries", "20"}})};
  });
  two.servers[2]->keeps = true;
  std::deque<GroupOutcome> calls;
  const auto call = [&](std::size_t from, Protocol& high, ParticipantSet to) {
    const Shepherd inside(two.net[from].monitor());
    const SessionRef session = *two.layers[from]->open(high, to);
    session->call(two.net.message(from, "question"), calls.emplace_back(), kNoLimit);
  };
  ParticipantSet other = two.net.to(2);
  other.protocol += 1;  // another flow: UNIQUE keeps 1,024 numbers per flow
  ParticipantSet anyone = SimHosts::anyone(other.protocol);
  {
    const Shepherd inside(two.net[2].monitor());
    ASSERT_TRUE(two.layers[2]->open_enable(*two.servers[2], anyone));
  }
  for (int i = 0; i < 2'000; ++i) {
    call(0, *two.client, i % 2 == 0 ? two.net.to(2) : other);
    if (i % 100 == 0) two.run(1ms);
  }
  two.run(1ms);
  EXPECT_EQ(two.servers[2]->kept.size(), 1'792U);
  call(1, *two.servers[1], two.net.to(2));
  two.run();
  EXPECT_EQ(two.servers[2]->kept.size(), 1'793U) << "another host finds one";
  two.servers[2]->keeps = false;
  two.answer(2);
  two.run(10s);
  for (const GroupOutcome& one : calls) EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(two.servers[2]->executed.size(), calls.size());
  EXPECT_EQ(two.state(2), 0U);
}

/// With threads, a duplicate may be dropped while the handler of ATOMIC waits for its turn.
TEST(CompositeWithoutRoom, atomic_keeps_no_place_for_a_request_that_is_gone) {
  for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
    SimOptions options = Repeating::options(seed);
    options.link.duplicate = 1;
    Several one(
        1,
        [] {
          return std::vector<Part>{part(grpc_kind()),   part(sync_kind()),   part(one_accept_kind()),
                                   part(number_kind()), part(unique_kind()), part(atomic_kind(), {{"hold", "4"}})};
        },
        options, kThreads[1]);
    GroupOutcome calls[8];
    for (GroupOutcome& call : calls) {
      one.call("again", call, 1s);
      one.run(2s);
      EXPECT_EQ(call.outcome, Errc::ok) << "seed " << seed;
    }
    EXPECT_EQ(one.servers[1]->executed.size(), std::size(calls)) << "seed " << seed;
  }
}

/// A server has 20 requests to answer. Its ACK has room for 14 replies, the client's share of 32: it leaves as many
/// free, and an eighth besides.
struct ManyReplies {
  ManyReplies() {
    one.servers[1]->keeps = true;
    for (GroupOutcome& call : calls) {
      one.call(text, call, 10s);
      one.run(1ms);  // the request is acknowledged
    }
    EXPECT_EQ(one.servers[1]->kept.size(), calls.size());
    EXPECT_EQ(one.layers[1]->events().timers(), 0U);
  }
  const std::string text = std::string(1'000, 'x');
  BufferPool pool;
  const std::string memory = std::to_string(8 * Message::copy_of(pool, std::as_bytes(std::span(text))).footprint());
  Several one{1, [this] {
                return std::vector<Part>{part(grpc_kind()),       part(sync_kind()),
                                         part(one_accept_kind()), part(number_kind()),
                                         part(unique_kind()),     part(ack_kind(), {{"memory", memory}})};
              }};
  std::vector<GroupOutcome> calls{20};
};

TEST(CompositeWithoutRoom, ack_keeps_as_many_replies_to_a_host_as_its_share_of_four_times_the_memory) {
  ManyReplies many;
  many.one.net.world.set_links({.loss = 1});
  many.one.answer(1);
  EXPECT_EQ(many.one.layers[1]->events().timers(), 14U) << "replies that are kept, to be sent again";
  many.one.net.world.set_links({});
  many.one.run(20s);
  EXPECT_EQ(std::ranges::count(many.calls, Errc::ok, &GroupOutcome::outcome), 14);
  EXPECT_EQ(many.one.layers[1]->events().timers(), 0U);
}

TEST(CompositeWithoutRoom, the_caller_is_told_at_once_that_the_reply_is_lost) {
  ManyReplies many;
  many.one.answer(1);
  many.one.run(1s);
  EXPECT_EQ(std::ranges::count(many.calls, Errc::ok, &GroupOutcome::outcome), 14);
  EXPECT_EQ(std::ranges::count(many.calls, Errc::call_lost, &GroupOutcome::outcome), 6);
  EXPECT_EQ(many.one.servers[1]->executed.size(), many.calls.size());
}

}  // namespace
}  // namespace lrpc::netrpc::composite
