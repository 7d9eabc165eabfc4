// The framework of composite protocols: the bag, attributes, and what a composition is refused for.
#include "netrpc/composite/composite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

/// A micro-protocol in a few lines: what is made of its parts.
class Any final : public MicroProtocol {
 public:
  explicit Any(std::shared_ptr<void> holds) : holds_(std::move(holds)) {}

 private:
  std::shared_ptr<void> holds_;
};
using Body = std::function<void(MicroParts&)>;
MicroKind kind_of(std::string name, std::vector<std::string_view> imports, Body body) {
  MicroKind kind;
  kind.name = std::move(name);
  kind.imports = std::move(imports);
  kind.make = [body = std::move(body)](MicroParts& parts) -> Result<std::unique_ptr<MicroProtocol>> {
    body(parts);
    return std::unique_ptr<MicroProtocol>(std::make_unique<Any>(nullptr));
  };
  return kind;
}
MicroKind exporting(MicroKind kind, std::vector<std::string_view> exports) {
  kind.exports = std::move(exports);
  return kind;
}
const std::vector<std::string_view> kInsertion{kMessageInsertedIntoBag.name};

/// One composite protocol on each of two hosts, over IP.
struct Two {
  explicit Two(const std::function<std::vector<Part>(std::size_t host)>& parts, SimOptions options = {})
      : net(2, 1, options) {
    for (std::size_t i = 0; i < 2; ++i) {
      const Shepherd inside(net[i].monitor());
      auto made = Framework::make(net[i].host(), "cp", net[i].ip(), parts(i));
      EXPECT_TRUE(made) << made.error().message();
      layer[i] = made->get();
      net[i].own(*std::move(made));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      sink[i] = &net[i].add<SinkProtocol>();
      const Shepherd inside(net[i].monitor());
      EXPECT_TRUE(layer[i]->open_enable(*sink[i], SimHosts::anyone()));
    }
    const Shepherd inside(net[0].monitor());
    session = *layer[0]->open(*sink[0], net.to(1));
  }
  ~Two() {
    session = {};
    for (SinkProtocol* const one : sink) one->sessions.clear();
  }
  Errc push(std::string_view text) {
    const Shepherd inside(net[0].monitor());
    return session->push(net.message(0, text));
  }
  void run() { net.world.run_for(100ms); }

  SimHosts net;
  Framework* layer[2] = {};
  SinkProtocol* sink[2] = {};
  SessionRef session;
};

std::vector<Part> nothing(std::size_t /*host*/) { return {}; }

// ---- the composition ----

TEST(Composition, is_checked_before_anything_runs) {
  const MicroKind a = exporting(kind_of("A", {}, {}), {"Gone"});
  MicroKind b = kind_of("B", {"Gone", "Message_Inserted_Into_Bag"}, {});
  b.needs = {{"A"}, {"C", "D"}};
  b.excludes = {"E"};
  const MicroKind c = kind_of("C", {}, {});
  const MicroKind e = kind_of("E", {}, {});
  const MicroKind other = exporting(kind_of("OTHER", {}, {}), {"Gone"});
  MicroKind first = kind_of("FIRST", {}, {});
  MicroKind second = kind_of("SECOND", {}, {});
  first.verifies = second.verifies = true;
  using Errors = std::vector<std::string>;
  EXPECT_EQ(check_composition({&a, &b, &c}), Errors{});
  EXPECT_EQ(check_composition({&b, &c}),
            (Errors{"B handles event 'Gone', which nobody exports, add who does, or take B out", "B needs A, add it"}));
  EXPECT_EQ(check_composition({&a, &b}), Errors{"B needs C or D, add it"});
  EXPECT_EQ(check_composition({&a, &b, &c, &e}), Errors{"B and E exclude each other, take one out"});
  EXPECT_EQ(check_composition({&a, &a}),
            (Errors{"A is there twice, take one out", "A exports event 'Gone', which another one exports already"}));
  EXPECT_EQ(check_composition({&a, &other}), Errors{"OTHER exports event 'Gone', which another one exports already"});
  EXPECT_EQ(check_composition({&first, &second}),
            Errors{"SECOND verifies messages, and another one does already, take one out"});
}

TEST(Composition, holds_micro_protocols_to_what_their_kinds_say) {
  SimHosts net(1);
  const Shepherd inside(net[0].monitor());
  const auto refusal = [&](std::vector<Part> parts) {
    const auto made = Framework::make(net[0].host(), "cp", net[0].ip(), std::move(parts));
    EXPECT_EQ(made.code(), Errc::invalid_argument);
    return made ? std::string() : made.error().text;
  };
  static constexpr EventName<int> kGone{"Gone"};
  static constexpr EventName<std::uint64_t> kGoneElsewhere{"Gone"};
  const auto ignore = [](int) {};
  EXPECT_EQ(refusal({{kind_of("A", {}, [&](MicroParts& parts) { parts.handle(kGone, ignore); })}}),
            "cp: A: its kind does not import event 'Gone'");
  EXPECT_EQ(refusal({{kind_of("A", {}, [](MicroParts& parts) { (void)parts.exported(kGone); })}}),
            "cp: A: its kind does not export event 'Gone'");
  const auto raises = [](MicroParts& parts) { (void)parts.exported(kGone); };
  const auto handles = [](MicroParts& parts) { parts.handle(kGoneElsewhere, [](std::uint64_t) {}); };
  EXPECT_EQ(refusal({{exporting(kind_of("A", {}, raises), {"Gone"})}, {kind_of("B", {"Gone"}, handles)}}),
            "cp: B: event 'Gone' has other parameters");
  const auto declares = [](MicroParts& parts) {
    (void)parts.attribute<int>("state", Visibility::of_all);
    (void)parts.attribute<int>("private");
  };
  EXPECT_EQ(refusal({{kind_of("A", {}, declares)}, {kind_of("B", {}, declares)}}),
            "cp: B: attribute 'state' is A's already");
  const auto looks = [](MicroParts& parts) {
    parts.later([](MicroParts& all) {
      (void)all.public_attribute<int>("state");
      (void)all.public_attribute<int>("private");
      (void)all.public_attribute<char>("state");
    });
  };
  EXPECT_EQ(refusal({{kind_of("B", {}, looks)}, {kind_of("A", {}, declares)}}),
            "cp: B: nobody has a public attribute 'private'; B: attribute 'state' of A has another type");
  const auto large = [](MicroParts& parts) {
    (void)parts.attribute<std::array<char, 200>>("large");
    (void)parts.attribute<std::array<char, 8>>("bytes", Visibility::of_owner, InHeader::yes);
  };
  EXPECT_EQ(
      refusal({{kind_of("A", {}, large)}}),
      "cp: A: attributes of more than 192 bytes; A: attribute 'bytes' is no integer, and cannot travel in the header");
  const auto greedy = [](MicroParts& parts) {
    for (int i = 0; i < 64; ++i) (void)parts.send_bit();
  };
  EXPECT_EQ(refusal({{kind_of("A", {}, greedy)}}),
            "cp: A: more than 63 micro-protocols have a say in when messages leave");
}

// ---- messages ----

TEST(Composite, without_micro_protocols_passes_messages_both_ways) {
  Two two(nothing);
  two.sink[1]->echo = true;
  EXPECT_EQ(two.push("hello"), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[1]->received, std::vector<std::string>{"hello"});
  EXPECT_EQ(two.sink[0]->received, std::vector<std::string>{"hello"});
  for (Framework* const one : two.layer) {
    EXPECT_EQ(one->bag().count(), 0U);
    control::Request request = control::Statistics{};
    EXPECT_EQ(one->control(request), Errc::ok);
    EXPECT_EQ(std::get<control::Statistics>(request).sent, 1U);
    EXPECT_EQ(std::get<control::Statistics>(request).received, 1U);
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
  const Shepherd inside(two.net[1].monitor());
  EXPECT_EQ(two.sink[1]->sessions.front()->push(two.net.message(1, "what nobody inserts")), Errc::limit_reached);
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
  EXPECT_EQ(two.layer[0]->attributes().header_size(), 5U);
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
  EXPECT_EQ(std::get<control::MaximumMessage>(maximum).size + 5, std::get<control::MaximumMessage>(below).size);
}

TEST(Composite, a_message_without_the_whole_header_is_dropped) {
  const auto heads = [](std::size_t host) {
    if (host == 0) return std::vector<Part>{};  // sends no header
    return std::vector<Part>{{kind_of("HEAD", {}, [](MicroParts& parts) {
      (void)parts.attribute<std::uint64_t>("eight", Visibility::of_owner, InHeader::yes);
    })}};
  };
  Two two(heads);
  EXPECT_EQ(two.push("seven.."), Errc::ok);
  EXPECT_EQ(two.push("eight..."), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[1]->received, std::vector<std::string>{""});
  control::Request request = control::Statistics{};
  EXPECT_EQ(two.layer[1]->control(request), Errc::ok);
  EXPECT_EQ(std::get<control::Statistics>(request).malformed, 1U);
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
