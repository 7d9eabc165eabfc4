// Composite protocols: how messages pass through the bag.
#include "netrpc/composite/composite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "netrpc/composite/test/two.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

std::vector<Part> nothing(std::size_t /*host*/) { return {}; }

TEST(Composite, without_micro_protocols_passes_messages_both_ways) {
  Two two(nothing);
  two.sink[1]->echo = true;
  EXPECT_EQ(two.push("hello"), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[1]->received, std::vector<std::string>{"hello"});
  EXPECT_EQ(two.sink[0]->received, std::vector<std::string>{"hello"});
  for (Framework* const one : two.layer) {
    EXPECT_EQ(one->bag().count(), 0U);
    EXPECT_EQ(two.statistics(one == two.layer[1]).sent, 1U);
    EXPECT_EQ(two.statistics(one == two.layer[1]).received, 1U);
  }
}

/// The server's side of the paper's null composite protocol (§4.2, Figure 5).
MicroKind acknowledging() {
  return kind_of("ACKNOWLEDGE", {kMessagePoppedFromCp.name}, [](MicroParts& parts) {
    parts.handle(kMessagePoppedFromCp, [parts](const ItemRef& item) mutable {
      static constexpr std::string_view kAck = "ack";
      Message ack = Message::copy_of(parts.host().pool(), std::as_bytes(std::span(kAck)));
      parts.bag().insert(parts.bag().new_item(item->session(), Direction::down, std::move(ack)));
    });
  });
}

TEST(Composite, the_null_protocol_of_the_paper_raises_19_events_a_round_trip) {
  Two two([](std::size_t host) { return host == 1 ? std::vector<Part>{{acknowledging()}} : std::vector<Part>{}; });
  EXPECT_EQ(two.push("x"), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[0]->received, std::vector<std::string>{"ack"});
  EXPECT_EQ(two.layer[0]->events().raised() + two.layer[1]->events().raised(), 19U);
}

TEST(Composite, a_message_leaves_when_all_have_set_their_bit_and_all_have_seen_it) {
  std::vector<std::string> seen;
  SendBit bits[2];
  ItemRef held;
  Two two([&](std::size_t host) {
    std::vector<Part> parts;
    if (host == 1) return parts;
    parts.push_back({kind_of("EAGER", kInsertion, [&](MicroParts& for_it) {
      bits[0] = for_it.send_bit();
      for_it.handle(kMessageInsertedIntoBag, [&, for_it](const ItemRef& item) mutable {
        for_it.bag().set_send_bit(bits[0], item);
        seen.emplace_back("eager");
      });
    })});
    parts.push_back({kind_of("HOLDS", kInsertion, [&](MicroParts& for_it) {
      bits[1] = for_it.send_bit();
      for_it.handle(kMessageInsertedIntoBag, [&](const ItemRef& item) {
        held = item;
        seen.emplace_back("holds");
      });
    })});
    parts.push_back({kind_of("SEES", {kMessageReadyToBeSent.name}, [&](MicroParts& for_it) {
      for_it.handle(kMessageReadyToBeSent, [&](const ItemRef&) { seen.emplace_back("ready"); });
    })});
    return parts;
  });
  EXPECT_EQ(two.push("later"), Errc::ok);
  two.run();
  EXPECT_TRUE(two.sink[1]->received.empty());
  EXPECT_EQ(two.layer[0]->bag().count(), 1U);
  EXPECT_EQ(two.statistics(0).state, 1U);
  EXPECT_EQ(two.layer[0]->describe_bag(), "down, 5 bytes, in the bag, 1 bits missing\n");
  {
    const Shepherd inside(two.net[0].monitor());
    two.layer[0]->bag().set_send_bit(bits[1], held);
    two.layer[0]->bag().set_send_bit(bits[1], held);
  }
  two.run();
  EXPECT_EQ(two.sink[1]->received, std::vector<std::string>{"later"});
  EXPECT_EQ(two.layer[0]->bag().count(), 0U);
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (std::vector<std::string>{"eager", "holds", "ready"}));
  EXPECT_TRUE(held->has_left());
  EXPECT_EQ(Bag::describe(*held), "down, 0 bytes, gone, 0 bits missing");
  held = {};
}

TEST(Composite, a_message_whose_bit_is_set_at_once_is_seen_by_all_before_it_is_ready) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::string seen;
    const auto says = [&](MicroParts& parts, const EventName<ItemRef>& event, char what) {
      parts.handle(event, [&seen, what](const ItemRef&) { seen += what; });
    };
    SimOptions options;
    options.seed = seed;
    Two two(
        [&](std::size_t host) {
          if (host == 1) return std::vector<Part>{};
          return std::vector<Part>{
              {kind_of("SEES", kInsertion, [&](MicroParts& parts) { says(parts, kMessageInsertedIntoBag, 's'); })},
              {kind_of("EAGER", kInsertion,
                       [&](MicroParts& parts) {
                         const SendBit bit = parts.send_bit();
                         parts.handle(kMessageInsertedIntoBag, [parts, bit](const ItemRef& item) mutable {
                           parts.bag().set_send_bit(bit, item);
                         });
                       })},
              {kind_of("ALSO", {kMessageInsertedIntoBag.name, kMessageReadyToBeSent.name}, [&](MicroParts& parts) {
                says(parts, kMessageInsertedIntoBag, 's');
                says(parts, kMessageReadyToBeSent, 'r');
              })}};
        },
        options);
    EXPECT_EQ(two.push("x"), Errc::ok);
    EXPECT_EQ(seen, "ssr") << "seed " << seed;
  }
}

TEST(Composite, a_message_is_in_the_bag_once) {
  ItemRef held;
  Two two([&](std::size_t host) {
    if (host == 1) return std::vector<Part>{};
    return std::vector<Part>{{kind_of("TAKES", kInsertion, [&](MicroParts& parts) {
      (void)parts.send_bit();
      parts.handle(kMessageInsertedIntoBag, [&, parts](const ItemRef& item) mutable {
        held = item;
        parts.bag().erase(item);
      });
    })}};
  });
  EXPECT_EQ(two.push("taken"), Errc::ok);
  const Shepherd inside(two.net[0].monitor());
  Bag& bag = two.layer[0]->bag();
  EXPECT_FALSE(held->has_left());
  for (const ItemRef& item : {held, ItemRef()}) {
    bag.insert(item);
    bag.set_send_bit({~std::uint64_t{0}}, item);
    bag.erase(item);
  }
  EXPECT_EQ(bag.count(), 0U);
  EXPECT_EQ(Bag::describe(*held), "down, 5 bytes, not in the bag, 0 bits missing");
  held = {};
}

TEST(Composite, who_goes_through_the_bag_may_take_messages_out_and_put_some_in) {
  Two two([&](std::size_t host) {
    if (host == 1) return std::vector<Part>{};
    return std::vector<Part>{{kind_of("HOLDS", {}, [](MicroParts& parts) { (void)parts.send_bit(); })}};
  });
  for (const char* text : {"a", "bb", "ccc", "dddd"}) EXPECT_EQ(two.push(text), Errc::ok);
  const Shepherd inside(two.net[0].monitor());
  Bag& bag = two.layer[0]->bag();
  std::string visited;
  bag.for_each([&](const ItemRef& item) {
    visited += std::to_string(item->message.size());
    if (item->message.size() != 4) return;
    bag.insert(bag.new_item(two.session, Direction::down, two.net.message(0, "eeeee")));
    std::vector<ItemRef> others;
    bag.for_each([&](const ItemRef& other) { others.push_back(other); });
    for (const ItemRef& other : others)
      if (other->message.size() != 2) bag.erase(other);
  });
  EXPECT_EQ(visited, "42");
  EXPECT_EQ(bag.count(), 1U);
}

TEST(Composite, emptying_the_bag_deletes_all_messages_without_an_event) {
  int deleted = 0;
  Two two([&](std::size_t host) {
    if (host == 1) return std::vector<Part>{};
    return std::vector<Part>{{kind_of("HOLDS", {kMessageDeletedFromBag.name}, [&](MicroParts& parts) {
      (void)parts.send_bit();
      parts.handle(kMessageDeletedFromBag, [&](const ItemRef&) { ++deleted; });
    })}};
  });
  for (const char* text : {"a", "b", "c"}) EXPECT_EQ(two.push(text), Errc::ok);
  const Shepherd inside(two.net[0].monitor());
  Bag& bag = two.layer[0]->bag();
  std::vector<ItemRef> held;
  bag.for_each([&](const ItemRef& item) {
    if (held.empty()) held.push_back(item);
  });
  EXPECT_EQ(bag.count(), 3U);
  EXPECT_GT(two.net[0].pool().in_use(), 0U);
  bag.empty();
  EXPECT_EQ(bag.count(), 0U);
  EXPECT_FALSE(held.front()->in_bag());
  held.clear();
  EXPECT_EQ(two.net[0].pool().in_use(), 0U) << "their memory is given back";
  EXPECT_EQ(deleted, 0);
  bag.insert(bag.new_item(two.session, Direction::down, two.net.message(0, "d")));
  EXPECT_EQ(bag.count(), 1U);
}

TEST(Composite, a_message_that_is_deleted_from_the_bag_does_not_leave) {
  for (const auto& when : {kMessageInsertedIntoBag, kMessageReadyToBeSent}) {
    int deleted = 0;
    Two two([&](std::size_t host) {
      if (host == 1) return std::vector<Part>{};
      return std::vector<Part>{{kind_of("DROPS", {when.name, kMessageDeletedFromBag.name}, [&](MicroParts& parts) {
        parts.handle(when, [parts](const ItemRef& item) mutable { parts.bag().erase(item); });
        parts.handle(kMessageDeletedFromBag, [&](const ItemRef&) { ++deleted; });
      })}};
    });
    EXPECT_EQ(two.push("dropped"), Errc::ok);
    two.run();
    EXPECT_TRUE(two.sink[1]->received.empty());
    EXPECT_EQ(deleted, 1);
  }
}

TEST(Composite, another_verify_takes_the_place_of_the_framework_s) {
  const auto picky = [](std::size_t host) {
    if (host == 0) return std::vector<Part>{};
    MicroKind kind = kind_of("PICKY", {kMessagePoppedToCp.name}, [](MicroParts& parts) {
      parts.handle(kMessagePoppedToCp, [parts](const Entering& entering) mutable {
        if (entering.message->size() < 4) return;
        parts.bag().insert(parts.item_of(entering));
      });
    });
    kind.verifies = true;
    return std::vector<Part>{{std::move(kind)}};
  };
  Two two(picky);
  EXPECT_EQ(two.push("no"), Errc::ok);
  EXPECT_EQ(two.push("well"), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[1]->received, std::vector<std::string>{"well"});
  EXPECT_EQ(two.statistics(1).refused, 1U);
  const Shepherd inside(two.net[1].monitor());
  EXPECT_EQ(two.sink[1]->sessions.front()->push(two.net.message(1, "what nobody inserts")), Errc::limit_reached);
}

TEST(Composite, a_message_that_verify_makes_an_item_of_and_does_not_insert_is_refused) {
  Two two([](std::size_t) {
    MicroKind kind = kind_of("LOOKS", {kMessagePushedToCp.name}, [](MicroParts& parts) {
      parts.handle(kMessagePushedToCp, [parts](const Entering& entering) mutable { (void)parts.item_of(entering); });
    });
    kind.verifies = true;
    return std::vector<Part>{{std::move(kind)}};
  });
  EXPECT_EQ(two.push("looked at"), Errc::limit_reached);
  EXPECT_EQ(two.statistics(0).refused, 1U);
}

TEST(Composite, what_the_layer_below_says_is_told_to_who_pushes_and_to_who_handles_it) {
  Errc told = Errc::ok;
  Two two([&](std::size_t host) {
    if (host == 1) return std::vector<Part>{};
    return std::vector<Part>{{kind_of("HEARS", {kMessagePushedFromCp.name}, [&](MicroParts& parts) {
      parts.handle(kMessagePushedFromCp, [&](const ItemRef& item) { told = item->outcome(); });
    })}};
  });
  EXPECT_EQ(two.push(std::string(100'000, 'x')), Errc::message_too_long);
  EXPECT_EQ(told, Errc::message_too_long);
}

}  // namespace
}  // namespace lrpc::netrpc::composite
