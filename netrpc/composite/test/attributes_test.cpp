// Composite protocols: the attributes of messages, and how the header carries them.
#include "netrpc/composite/composite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "netrpc/composite/test/two.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

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
  const Shepherd inside(two.net[0].monitor());
  const std::size_t size = test::asked<control::MaximumMessage>(two.net[0].ip()).size;
  EXPECT_EQ(test::asked<control::MaximumMessage>(*two.session).size + 7, size);
  EXPECT_EQ(test::asked<control::MaximumMessage>(*two.layer[0]).size + 7, size);
  const std::size_t advertised = two.sink[0]->advertised + 7;
  EXPECT_EQ(test::asked<control::AdvertisedMaximum>(*two.layer[0]).size, advertised);
  EXPECT_EQ(test::asked<control::AdvertisedMaximum>(two.session_below()->high()).size, advertised);
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
  EXPECT_EQ(two.sink[1]->received.front().substr(2), "ABCD12\atext");  // after the tag
}

/// Encodes the attributes of NUMBER and PAINT in one byte, and refuses odd bytes.
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
  EXPECT_EQ(two.sink[0]->received.size(), 1U);  // 'O' is 0x4f, an odd byte
  EXPECT_EQ(two.statistics(0).malformed, 1U);
  EXPECT_EQ(two.statistics(0).refused, 0U);
}

enum Loose { kLoose };
enum class Truth : bool { no, yes };
static_assert(is_any_bits<std::uint8_t> && is_any_bits<Color> && is_any_bits<std::byte>);
static_assert(!is_any_bits<bool> && !is_any_bits<Loose> && !is_any_bits<Truth> && !is_any_bits<double>);

TEST(Composite, a_message_without_the_right_header_is_dropped) {
  const auto heads = [](std::size_t host) {
    if (host == 0) return std::vector<Part>{};  // has no attributes
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
  with_header[1] ^= 1;  // the tag of another composition
  EXPECT_EQ(two.push(with_header), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[1]->received, (std::vector<std::string>{"echoed", ""}));
  EXPECT_EQ(two.statistics(1).malformed, 3U);
  EXPECT_EQ(two.statistics(1).refused, 0U);
}

}  // namespace
}  // namespace lrpc::netrpc::composite
