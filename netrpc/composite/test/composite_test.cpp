// Composite protocols: messages through the bag, and their attributes.
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

// ---- turns ----

constexpr EventName<int> kLater{"Later"};

/// Says the size of each message that is inserted, at once and later.
Part says_later(std::vector<std::string>& said) {
  return {kind_of("SAYS", kInsertion, [&said](MicroParts& parts) {
    const auto* const later = parts.own(kLater, [&said](int size) { said.push_back("later " + std::to_string(size)); });
    parts.handle(kMessageInsertedIntoBag, [&said, parts, later](const ItemRef& item) {
      parts.events().raise(*later, Raise::asynchronous, static_cast<int>(item->message.size()));
      said.push_back("now " + std::to_string(item->message.size()));
    });
  })};
}

TEST(Composite, what_is_raised_asynchronously_runs_before_a_push_or_a_demux_returns) {
  std::vector<std::string> said;
  Two two([&](std::size_t) { return std::vector<Part>{says_later(said)}; });
  EXPECT_EQ(two.push("four"), Errc::ok);
  EXPECT_EQ(said, (std::vector<std::string>{"now 4", "later 4"}));
  two.run();
  EXPECT_EQ(said, (std::vector<std::string>{"now 4", "later 4", "now 4", "later 4"}));
}

/// Waits, where it is called, until the next message has come and has been handled.
class Waits final : public Protocol {
 public:
  Waits(Host& host, const std::vector<std::string>& said) : Protocol(host, "waits"), said_(said) {}
  Errc open_done(Session& /*lower*/, const ParticipantSet& /*participants*/) noexcept override { return Errc::ok; }
  void demux(Session& /*lower*/, Message message) noexcept override {
    if (message.size() != 1) return;
    EXPECT_TRUE(host().engine().wait(
        host(), [this] { return std::ranges::find(said_, "later 2") != said_.end(); }, host().now() + 1s));
  }

 private:
  const std::vector<std::string>& said_;
};

TEST(Composite, a_protocol_above_that_blocks_does_not_hold_up_the_messages_that_its_thread_sees_to) {
  std::vector<std::string> said;
  Two two([&](std::size_t host) { return host == 0 ? std::vector<Part>{} : std::vector<Part>{says_later(said)}; });
  auto& waits = two.net[1].add<Waits>(said);
  {
    const Shepherd inside(two.net[1].monitor());
    const auto other = SimHosts::anyone(protocol_numbers::kFirstOfTests + 1);
    EXPECT_TRUE(two.layer[1]->open_enable(waits, other));
  }
  SessionRef session;
  {
    const Shepherd inside(two.net[0].monitor());
    session = *two.layer[0]->open(*two.sink[0], two.net.to(1, protocol_numbers::kFirstOfTests + 1));
    EXPECT_EQ(session->push(two.net.message(0, "1")), Errc::ok);
    EXPECT_EQ(session->push(two.net.message(0, "22")), Errc::ok);
  }
  two.run();
  EXPECT_EQ(said, (std::vector<std::string>{"now 1", "now 2", "later 2", "later 1"}));
  session = {};
}

/// Has an item when it ends, as one of its handlers does, and deletes it then.
class Hoards final : public MicroProtocol {
 public:
  explicit Hoards(MicroParts& parts) : parts_(parts) {
    (void)parts_.send_bit();
    parts_.handle(kMessageInsertedIntoBag, [this, own = ItemRef()](const ItemRef& item) mutable {
      own = item;
      held_ = item;
    });
    parts_.handle(kMessageDeletedFromBag, [this](const ItemRef&) { ADD_FAILURE() << held_->message.size(); });
  }
  ~Hoards() override { parts_.bag().erase(held_); }

 private:
  MicroParts parts_;
  ItemRef held_;
};

TEST(Composite, that_ends_with_messages_in_its_bag_tells_nobody) {
  Two two([&](std::size_t host) {
    if (host == 1) return std::vector<Part>{};
    MicroKind kind = kind_of("HOARDS", {kMessageInsertedIntoBag.name, kMessageDeletedFromBag.name}, {});
    kind.make = make_micro<Hoards>;
    return std::vector<Part>{{std::move(kind)}};
  });
  EXPECT_EQ(two.push("left behind"), Errc::ok);
  EXPECT_EQ(two.layer[0]->bag().count(), 1U);
}

// ---- attributes ----

enum class Color : std::uint8_t { red = 3, blue = 7 };

TEST(Composite, attributes_travel_in_a_header_that_does_not_depend_on_the_order_of_the_parts) {
  std::vector<std::string> arrived;
  Framework* receiving = nullptr;
  const auto number = [] {
    return kind_of("NUMBER", kInsertion, [](MicroParts& parts) {
      const auto sequence = parts.attribute<std::uint32_t>("sequence", Visibility::of_all, InHeader::yes);
      (void)parts.attribute<std::uint64_t>("at_home");
      parts.handle(
          kMessageInsertedIntoBag, [sequence](const ItemRef& item) { sequence.set(*item, 0x01020304); },
          [](const ItemRef& item) { return item->direction == Direction::down; });
    });
  };
  const auto paint = [&] {
    return kind_of("PAINT", kInsertion, [&](MicroParts& parts) {
      const auto color = parts.attribute<Color>("color", Visibility::of_owner, InHeader::yes);
      parts.later([&, color](MicroParts& all) {
        const auto sequence = all.public_attribute<std::uint32_t>("sequence");
        all.handle(kMessageInsertedIntoBag, [&, color, sequence](const ItemRef& item) {
          if (item->direction == Direction::down) return color.set(*item, Color::blue);
          EXPECT_EQ(color(*item), Color::blue);
          EXPECT_EQ(sequence(*item), 0x01020304U);
          arrived.push_back(receiving->describe(*item));
        });
      });
    });
  };
  Two two([&](std::size_t host) {
    return host == 0 ? std::vector<Part>{{number()}, {paint()}} : std::vector<Part>{{paint()}, {number()}};
  });
  receiving = two.layer[1];
  EXPECT_EQ(two.layer[0]->attributes().header_size(), 7U);
  EXPECT_EQ(two.push("with"), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[1]->received, std::vector<std::string>{"with"});
  EXPECT_EQ(arrived, std::vector<std::string>{"up, 4 bytes, in the bag, 1 bits missing; PAINT.color = 7, "
                                              "NUMBER.sequence = 16909060, NUMBER.at_home = 0"});
  control::Request maximum = control::MaximumMessage{};
  control::Request below = control::MaximumMessage{};
  const Shepherd inside(two.net[0].monitor());
  EXPECT_EQ(two.session->control(maximum), Errc::ok);
  EXPECT_EQ(two.net[0].ip().control(below), Errc::ok);
  const std::size_t size = std::get<control::MaximumMessage>(below).size;
  EXPECT_EQ(std::get<control::MaximumMessage>(maximum).size + 7, size);
  EXPECT_EQ(two.layer[0]->control(maximum), Errc::ok);
  EXPECT_EQ(std::get<control::MaximumMessage>(maximum).size + 7, size);
  control::Request advertised = control::AdvertisedMaximum{};
  EXPECT_EQ(two.layer[0]->control(advertised), Errc::ok);
  EXPECT_EQ(std::get<control::AdvertisedMaximum>(advertised).size, two.sink[0]->advertised + 7);
  advertised = control::AdvertisedMaximum{};
  EXPECT_EQ(two.session_below()->high().control(advertised), Errc::ok);
  EXPECT_EQ(std::get<control::AdvertisedMaximum>(advertised).size, two.sink[0]->advertised + 7);
}

TEST(Composite, attributes_travel_in_network_order_by_the_names_of_their_owners) {
  Two two([](std::size_t host) {
    if (host == 1) return std::vector<Part>{};
    const auto sets = [](std::string name, auto value) {
      return Part{kind_of(std::move(name), kInsertion, [value](MicroParts& parts) {
        const auto attribute = parts.attribute<decltype(value)>("it", Visibility::of_owner, InHeader::yes);
        parts.handle(kMessageInsertedIntoBag, [attribute, value](const ItemRef& item) { attribute.set(*item, value); });
      })};
    };
    return std::vector<Part>{sets("B", std::uint16_t{0x3132}), sets("A", std::int32_t{0x41424344}),
                             sets("C", Color::blue)};
  });
  EXPECT_EQ(two.push("text"), Errc::ok);
  two.run();
  ASSERT_EQ(two.sink[1]->received.size(), 1U);
  EXPECT_EQ(two.sink[1]->received.front().substr(2), "ABCD12\atext");  // behind the tag
}

/// Writes one byte for the two attributes of NUMBER and PAINT, and takes no odd one.
MicroKind mapping() {
  MicroKind kind = kind_of("MAPS", {}, [](MicroParts& parts) {
    parts.later([](MicroParts& all) {
      const auto number = all.mapped_attribute<std::uint32_t>("NUMBER.number");
      all.map_headers({.size = 1,
                       .write = [number](const Item& item, std::byte* to) { *to = std::byte(2 * number(item)); },
                       .read =
                           [number](Item& item, const std::byte* from) {
                             number.set(item, std::to_integer<std::uint32_t>(*from) / 2);
                             return (*from & std::byte{1}) == std::byte{0};
                           }});
    });
  });
  kind.maps = true;
  return kind;
}

TEST(Composite, another_mapping_takes_the_place_of_the_framework_s) {
  std::uint32_t arrived = 0;
  const auto number = [&] {
    return kind_of("NUMBER", kInsertion, [&](MicroParts& parts) {
      const auto attribute = parts.attribute<std::uint32_t>("number", Visibility::of_owner, InHeader::yes);
      parts.handle(kMessageInsertedIntoBag, [&, attribute](const ItemRef& item) {
        if (item->direction == Direction::up) arrived = attribute(*item);
        attribute.set(*item, 0x41 / 2);
      });
    });
  };
  Two two([&](std::size_t host) {
    return host == 0 ? std::vector<Part>{{number()}, {mapping()}} : std::vector<Part>{};
  });
  two.sink[1]->echo = true;
  EXPECT_EQ(two.push("A"), Errc::ok);
  two.run();
  ASSERT_EQ(two.sink[1]->received, std::vector<std::string>{"@A"});
  EXPECT_EQ(arrived, 0x20U);
  EXPECT_EQ(two.sink[0]->received, std::vector<std::string>{"A"});
  {
    const Shepherd inside(two.net[1].monitor());
    EXPECT_EQ(two.sink[1]->sessions.front()->push(two.net.message(1, "Odd")), Errc::ok);
  }
  two.run();
  EXPECT_EQ(two.sink[0]->received.size(), 1U);  // 'O' is 0x4f
  EXPECT_EQ(two.statistics(0).malformed, 1U);
  EXPECT_EQ(two.statistics(0).refused, 0U);
}

enum Loose { kLoose };
enum class Truth : bool { no, yes };
static_assert(is_any_bits<std::uint8_t> && is_any_bits<Color> && is_any_bits<std::byte>);
static_assert(!is_any_bits<bool> && !is_any_bits<Loose> && !is_any_bits<Truth> && !is_any_bits<double>);

TEST(Composite, a_message_without_the_right_header_is_dropped) {
  const auto heads = [](std::size_t host) {
    if (host == 0) return std::vector<Part>{};  // has none
    return std::vector<Part>{{kind_of("HEAD", {}, [](MicroParts& parts) {
      (void)parts.attribute<std::uint64_t>("eight", Visibility::of_owner, InHeader::yes);
    })}};
  };
  Two two(heads);
  two.sink[0]->echo = true;
  EXPECT_EQ(two.push("no header"), Errc::ok);
  {
    const Shepherd inside(two.net[1].monitor());
    const SessionRef back = *two.layer[1]->open(*two.sink[1], two.net.to(0));
    EXPECT_EQ(back->push(two.net.message(1, "echoed")), Errc::ok);
  }
  two.run();
  ASSERT_EQ(two.sink[0]->received.size(), 1U);
  std::string with_header = two.sink[0]->received.front();
  EXPECT_EQ(with_header.size(), 10U + 6);
  EXPECT_EQ(two.push(with_header.substr(0, 9)), Errc::ok);
  EXPECT_EQ(two.push(with_header.substr(0, 10)), Errc::ok);
  with_header[1] ^= 1;  // what another composition would write
  EXPECT_EQ(two.push(with_header), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[1]->received, (std::vector<std::string>{"echoed", ""}));
  EXPECT_EQ(two.statistics(1).malformed, 3U);
  EXPECT_EQ(two.statistics(1).refused, 0U);
}

TEST(Composite, raises_that_wait_keep_their_messages) {
  static constexpr EventName<ItemRef> kTimeout{"Timeout"};
  std::string seen;
  Two two([&](std::size_t host) {
    if (host == 1) return std::vector<Part>{};
    return std::vector<Part>{{kind_of("ACK", {kMessagePushedFromCp.name}, [&](MicroParts& parts) {
      const auto* const timeout = parts.own(kTimeout, [&](const ItemRef& item) { seen = Bag::describe(*item); });
      parts.handle(kMessagePushedFromCp, [parts, timeout](const ItemRef& item) {
        (void)parts.events().set_timer(*timeout, 10ms, Repeat::once, item);
      });
    })}};
  });
  EXPECT_EQ(two.push("gone"), Errc::ok);
  two.run();
  EXPECT_EQ(seen, "down, 0 bytes, gone, 0 bits missing");
  EXPECT_EQ(two.push("waits for ever"), Errc::ok);  // its timer ends with the composite protocol
}

}  // namespace
}  // namespace lrpc::netrpc::composite
