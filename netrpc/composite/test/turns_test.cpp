// Composite protocols: when asynchronously raised handlers run, and what ends with the composite protocol.
#include "netrpc/composite/composite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "netrpc/composite/test/two.h"

namespace lrpc::netrpc::composite {
namespace {

using namespace std::chrono_literals;

constexpr EventName<int> kLater{"Later"};

/// Records the size of each inserted message, at once and again later.
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

/// Its demux() waits until the next message has arrived and has been handled.
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

/// Still holds an item when it is destroyed, as does one of its handlers, and then deletes that item.
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
