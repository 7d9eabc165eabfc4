// The micro-protocols for datagrams, each alone, on wires that lose, duplicate and reorder, between hosts that crash.
#include "netrpc/composite/suite/suite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lrpc/netrpc/all_kinds.h"
#include "netrpc/composite/suite/flight.h"
#include "netrpc/composite/suite/window.h"
#include "netrpc/composite/test/two.h"
#include "netrpc/graph/options.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

SimOptions wire(SimLink link) {
  SimOptions options;
  options.link = link;
  return options;
}

/// Pushes 0, 1, 2, ... with `pause` between them. Returns what has arrived when nothing more can arrive.
std::vector<int> numbers_through(Two& two, int count, Duration pause = 100us) {
  for (int i = 0; i < count; ++i) {
    Errc outcome = two.push(std::to_string(i));
    while (outcome == Errc::limit_reached) {  // too many messages wait for acknowledgement
      two.net.world.run_for(1ms);
      outcome = two.push(std::to_string(i));
    }
    EXPECT_EQ(outcome, Errc::ok);
    two.net.world.run_for(pause);
  }
  two.net.world.run_for(60s);
  std::vector<int> arrived;
  for (const std::string& text : two.sink[1]->received) arrived.push_back(std::stoi(text));
  return arrived;
}
std::vector<int> up_to(int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(i);
  return all;
}

TEST(CompositeSuite, unique_drops_what_has_arrived_before) {
  Two two(
      [](std::size_t) {
        return std::vector<Part>{part(number_kind()), part(unique_kind())};
      },
      wire({.duplicate = 0.5, .reorder = 0.5}));
  std::vector<int> arrived = numbers_through(two, 1000);
  EXPECT_FALSE(std::ranges::is_sorted(arrived));
  std::ranges::sort(arrived);
  EXPECT_EQ(arrived, up_to(1000));
}

TEST(CompositeSuite, fifo_restores_the_order) {
  Two two(
      [](std::size_t) {
        return std::vector<Part>{part(number_kind()), part(fifo_kind())};
      },
      wire({.duplicate = 0.3, .reorder = 0.5}));
  EXPECT_EQ(numbers_through(two, 1000), up_to(1000));
}

TEST(CompositeSuite, fifo_does_without_what_is_lost) {
  Two two(
      [](std::size_t) {
        return std::vector<Part>{part(number_kind()), part(fifo_kind(), {{"patience", "20ms"}})};
      },
      wire({.loss = 0.1, .reorder = 0.5}));
  const std::vector<int> arrived = numbers_through(two, 1000);
  EXPECT_TRUE(std::ranges::is_sorted(arrived));
  EXPECT_GT(arrived.size(), 800U);
  EXPECT_LT(arrived.size(), 1000U);
  EXPECT_EQ(two.layer[1]->bag().count(), 0U);
}

TEST(CompositeSuite, fifo_holds_no_more_than_it_may) {
  Two two([](std::size_t host) {
    std::vector<Part> parts{part(number_kind()), part(fifo_kind(), {{"hold", "10"}})};
    if (host == 1) parts.push_back({kind_of("HOLDS", {}, [](MicroParts& made) { (void)made.send_bit(); })});
    return parts;
  });
  EXPECT_EQ(numbers_through(two, 100), std::vector<int>{});
  EXPECT_EQ(two.layer[1]->bag().count(), 11U);
}

TEST(CompositeSuite, ack_sends_again_what_is_lost) {
  Two two(
      [](std::size_t) {
        return std::vector<Part>{part(number_kind()), part(ack_kind(), {{"tries", "50"}})};
      },
      wire({.loss = 0.3}));
  std::vector<int> arrived = numbers_through(two, 500);
  EXPECT_GT(arrived.size(), 500U);  // lost acknowledgements cause duplicates
  std::ranges::sort(arrived);
  arrived.erase(std::unique(arrived.begin(), arrived.end()), arrived.end());
  EXPECT_EQ(arrived, up_to(500));
  EXPECT_EQ(two.layer[0]->bag().count(), 0U);
  EXPECT_EQ(two.layer[0]->events().timers(), 0U);
}

/// A peer that has not answered yet may take half of `most`, and one host a share of that.
TEST(CompositeSuite, ack_refuses_more_than_it_can_keep) {
  Two two([](std::size_t) { return std::vector<Part>{part(number_kind()), part(ack_kind(), {{"most", "8"}})}; });
  EXPECT_EQ(two.push("a"), Errc::ok);
  EXPECT_EQ(two.push("b"), Errc::ok);
  EXPECT_EQ(two.push("c"), Errc::limit_reached);
  two.run();
  EXPECT_EQ(two.push("d"), Errc::ok);
  two.run();
  EXPECT_EQ(two.sink[1]->received, (std::vector<std::string>{"a", "b", "d"}));
}

/// As the threads of handlers may let messages leave.
TEST(CompositeSuite, ack_keeps_what_leaves_after_messages_with_higher_numbers) {
  SendBit bit;
  ItemRef held;
  const auto holds_the_first = [&](MicroParts& parts) {
    bit = parts.send_bit();
    parts.handle(kMessageInsertedIntoBag, [&, parts](const ItemRef& item) mutable {
      if (!item->has_entered() || item->direction == Direction::up || held) return parts.bag().set_send_bit(bit, item);
      held = item;
    });
  };
  Two two([&](std::size_t host) {
    std::vector<Part> parts{part(number_kind()), part(unique_kind()), part(ack_kind())};
    if (host == 0) parts.push_back({kind_of("HOLDS", kInsertion, holds_the_first)});
    return parts;
  });
  for (const char* const text : {"first", "second", "third"}) EXPECT_EQ(two.push(text), Errc::ok);
  two.net.world.set_links({.loss = 1.0});
  {
    const Shepherd inside(two.net[0].monitor());
    two.layer[0]->bag().set_send_bit(bit, held);
  }
  EXPECT_EQ(held->outcome(), Errc::ok);
  held = {};
  two.net.world.set_links({});
  two.net.world.run_for(1s);
  EXPECT_EQ(two.sink[1]->received, (std::vector<std::string>{"second", "third", "first"}));
}

/// A message counts by the size of its buffers, and each host has a share of the memory.
TEST(CompositeSuite, ack_refuses_what_would_take_more_memory_than_a_host_s_share) {
  const std::string large(1'400, 'x');
  BufferPool pool;
  const std::size_t each = Message::copy_of_long(pool, std::as_bytes(std::span(large))).footprint();
  const std::string memory = std::to_string(8 * each);
  Two two([&](std::size_t) { return std::vector<Part>{part(number_kind()), part(ack_kind(), {{"memory", memory}})}; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(two.push(large), Errc::ok);
  EXPECT_EQ(two.push(large), Errc::limit_reached);
  two.run();
  EXPECT_EQ(two.push(large), Errc::ok) << "as those before are acknowledged";
  two.run();
  EXPECT_EQ(two.sink[1]->received.size(), 4U);
}

TEST(CompositeSuite, membership_hears_of_who_comes_and_of_who_is_suspected) {
  std::vector<std::string> changes;
  const std::function<std::vector<Peer>()>* group = nullptr;
  Two two([&](std::size_t host) {
    std::vector<Part> parts{part(number_kind()), part(ack_kind()), part(membership_kind())};
    if (host == 1) return parts;
    parts.push_back({kind_of("HEARS", {kMembershipChange.name, kGetGroup.name}, [&](MicroParts& made) {
      made.handle(kMembershipChange, [&](const Peer& peer, MembershipChange change) {
        changes.push_back((change == MembershipChange::joined ? "+" : "-") + to_string(peer.host));
      });
      made.later([&](MicroParts& all) { group = all.procedure(kGetGroup); });
    })});
    return parts;
  });
  EXPECT_EQ(two.push("hello"), Errc::ok);
  two.run();
  EXPECT_EQ(changes, std::vector<std::string>{"+10.0.0.2"});
  EXPECT_EQ((*group)().size(), 1U);
  two.sink[1]->sessions.clear();
  two.net[1].crash();
  EXPECT_EQ(two.push("is anybody there?"), Errc::ok);
  two.net.world.run_for(10s);
  EXPECT_EQ(changes, (std::vector<std::string>{"+10.0.0.2", "-10.0.0.2"}));
  EXPECT_EQ((*group)().size(), 0U);
  two.sink[1] = two.sink[0];  // the other sink was destroyed with its host
}

TEST(CompositeSuite, together_they_make_a_channel_without_loss_and_in_order) {
  Two two(
      [](std::size_t) {
        return std::vector<Part>{part(ack_kind(), {{"tries", "100"}}), part(unique_kind()), part(number_kind()),
                                 part(fifo_kind(), {{"patience", "100s"}})};
      },
      wire({.loss = 0.3, .duplicate = 0.2, .reorder = 0.5}));
  EXPECT_EQ(numbers_through(two, 500), up_to(500));
}

bool excludes(const MicroKind& one, const MicroKind& other) {
  return std::ranges::find(one.excludes, other.name) != one.excludes.end();
}

/// Kinds with equal exports exclude each other, too, so that the table in docs/COMPOSITE.md and the error show it.
TEST(CompositeSuite, kinds_that_cannot_be_in_one_composition_both_say_so) {
  const auto export_the_same = [](const MicroKind& one, const MicroKind& other) {
    return std::ranges::find_first_of(one.exports, other.exports) != one.exports.end();
  };
  const std::vector<MicroKind> kinds = suite_kinds();
  for (const MicroKind& one : kinds)
    for (const MicroKind& other : kinds) {
      if (one.name == other.name) continue;
      EXPECT_EQ(excludes(one, other), excludes(other, one)) << one.name << " " << other.name;
      EXPECT_TRUE(excludes(one, other) || !export_the_same(one, other)) << one.name << " " << other.name;
    }
}

/// The table of docs/COMPOSITE.md, generated from the kinds.
std::string table() {
  const auto list = [](const auto& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
    return text.empty() ? std::string("-") : text;
  };
  std::string text = "| | options | exports | imports | needs | excludes |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const MicroKind& kind : suite_kinds()) {
    std::vector<std::string> options;
    for (const OptionDescription& option : kind.options) {
      const std::string range = describe_range(option);
      options.push_back("`" + std::string(option.name) + "`: " + std::string(option.summary) +
                        (range.empty() ? "" : " (" + range + ")"));
    }
    std::vector<std::string> needs;
    for (const auto& any : kind.needs) {
      std::string one;
      for (const std::string_view name : any) one += (one.empty() ? "" : " or ") + std::string(name);
      needs.push_back(one);
    }
    text += "| " + kind.name + " | ";
    for (std::size_t i = 0; i < options.size(); ++i) text += (i == 0 ? "" : "<br>") + options[i];
    std::vector<std::string> imports(kind.imports.begin(), kind.imports.end());
    for (const std::string_view name : kind.may_import) imports.push_back(std::string(name) + " (if there)");
    if (options.empty()) text += "-";
    text +=
        " | " + list(kind.exports) + " | " + list(imports) + " | " + list(needs) + " | " + list(kind.excludes) + " |\n";
  }
  return text;
}

TEST(CompositeSuite, the_table_in_the_documents_is_what_the_code_says) {
  const std::string path = LRPC_GOLDEN_DIR "/../../../docs/COMPOSITE.md";
  std::stringstream document;
  document << std::ifstream(path).rdbuf();
  const std::string text = document.str();
  const std::size_t begin = text.find("| | options |");
  ASSERT_NE(begin, text.npos);
  const std::size_t end = std::min(text.find("\n\n", begin), text.size() - 1) + 1;
  if (std::getenv("LRPC_GOLDEN_UPDATE") != nullptr)
    std::ofstream(path) << text.substr(0, begin) << table() << text.substr(end);
  EXPECT_EQ(text.substr(begin, end - begin), table()) << path << "; LRPC_GOLDEN_UPDATE=1 writes it anew";
}

TEST(CompositeSuite, the_picture_in_the_documents_is_what_is_drawn) {
  std::stringstream document;
  document << std::ifstream(LRPC_GOLDEN_DIR "/../../../docs/COMPOSITE.md").rdbuf();
  const auto graph = GraphDescription::parse(
      "udp = UDP; cp = COMPOSITE { NUMBER; ACK(tries = 4); MEMBERSHIP; } over udp;", all_kinds());
  ASSERT_TRUE(graph) << graph.error().message();
  std::stringstream drawn(graph->draw_text());
  std::string picture;
  for (std::string line; std::getline(drawn, line);) picture += "    " + line + '\n';
  EXPECT_NE(document.str().find(picture), std::string::npos) << "docs/COMPOSITE.md lacks\n" << picture;
}

TEST(CompositeSuite, a_window_knows_its_numbers_as_a_set_does) {
  std::mt19937_64 random(3);
  Window window;
  std::set<std::uint64_t> seen;
  std::uint64_t highest = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t number =
        1 + (random() % 100 == 0 ? highest + random() % 5000 : highest + random() % 40 + 1 - 20 * (highest > 20));
    const bool old = number + Window::kSize <= highest;
    const bool fresh = !old && seen.insert(number).second;
    ASSERT_EQ(window.add(number), fresh) << number << " after " << highest;
    highest = std::max(highest, number);
  }
  EXPECT_FALSE(window.add(0));
  EXPECT_TRUE(window.add(~std::uint64_t{0}));
  EXPECT_FALSE(window.add(~std::uint64_t{0}));
}

TEST(CompositeSuite, a_flight_knows_which_numbers_may_still_leave) {
  constexpr std::uint64_t kWindow = 128;
  const auto nothing_is_under_way = [](std::uint64_t) { return false; };
  Flight flight;
  flight.sent(2);
  flight.settle(nothing_is_under_way);
  EXPECT_EQ(flight.first(), 1U) << "1 has not left";
  EXPECT_TRUE(flight.room(1, kWindow));
  flight.sent(1);
  flight.settle(nothing_is_under_way);
  EXPECT_EQ(flight.first(), 3U);
  flight.sent(1000);
  EXPECT_FALSE(flight.room(1000 - kWindow, kWindow)) << "too far behind what is under way";
  EXPECT_TRUE(flight.room(1001 - kWindow, kWindow));
  flight.settle(nothing_is_under_way);
  EXPECT_FALSE(flight.room(3, kWindow)) << "its receiver would take it for one that has come";
}

}  // namespace
}  // namespace lrpc::netrpc::composite
