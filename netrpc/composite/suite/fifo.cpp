// FIFO: a peer's messages leave upwards in the order in which it has pushed them.
#include <algorithm>
#include <new>
#include <vector>

#include "netrpc/composite/suite/stream.h"
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

constexpr EventName<Peer> kNext{"Next"};          ///< Perhaps another one may leave.
constexpr EventName<Peer> kPatience{"Patience"};  ///< Some have been held up for long.

class Fifo final : public MicroProtocol {
 public:
  explicit Fifo(MicroParts& parts)
      : parts_(parts),
        bit_(parts.send_bit()),
        hold_(std::max<std::uint64_t>(1, parts.options.number("hold", 256))),
        patience_(parts.options.duration("patience", std::chrono::seconds(5))),
        next_(parts.own(kNext, [this](const Peer& peer) { advance(peer); })),
        impatient_(parts.own(kPatience, [this](const Peer& peer) { skip(peer); })),
        peers_(peer_table<Order>(parts)) {
    parts_.later([this](MicroParts& all) {
      const auto number = all.public_attribute<std::uint64_t>(kNumber);
      const auto stream = all.public_attribute<std::uint32_t>(kStream);
      const auto ordered = [number](const ItemRef& item) {
        return item->direction == Direction::up && number(*item) != 0;
      };
      all.handle(kMessageInsertedIntoBag, [this, ordered, number, stream](const ItemRef& item) {
        if (!ordered(item)) return parts_.bag().set_send_bit(bit_, item);
        arrived(item, number(*item), stream(*item));
      });
      const auto is_gone = [this](const ItemRef& item) { gone(*item); };
      all.handle(kMessagePoppedFromCp, is_gone, ordered);
      all.handle(kMessageDeletedFromBag, is_gone, ordered);
    });
  }

 private:
  struct Held {
    std::uint64_t number;
    ItemRef item;
  };
  struct Order {
    Streams streams;
    std::uint64_t next = 1;
    const Item* going = nullptr;  ///< It may leave, but has not come back from above yet, or another one holds it.
    Events::TimerId timer = 0;
    std::vector<Held> held{};  ///< By their numbers, none below `next`.
    [[nodiscard]] bool busy() const noexcept { return going != nullptr || !held.empty(); }
  };

  void arrived(const ItemRef& item, std::uint64_t number, std::uint32_t stream) noexcept {
    const Peer peer = Peer::of(parts_.host(), *item);
    Order* const order = peers_.find_or_make(peer);
    if (order == nullptr) return parts_.bag().erase(item);
    const Streams::Belongs belongs = order->streams.take(stream);
    std::vector<Held> of_another;
    if (belongs == Streams::Belongs::first) {
      of_another = std::exchange(order->held, {});
      order->next = 1;
      order->going = nullptr;
    }
    const auto at = std::ranges::lower_bound(order->held, number, {}, &Held::number);
    const bool again = at != order->held.end() && at->number == number;
    const bool full = order->held.size() >= hold_;
    bool kept = belongs != Streams::Belongs::late && number >= order->next && !again && !(full && order->going);
    try {
      if (kept) order->held.insert(at, {number, item});
    } catch (const std::bad_alloc&) {
      kept = false;
    }
    for (const Held& one : of_another) parts_.bag().erase(one.item);  // `order` may be gone behind this
    if (!kept) return parts_.bag().erase(item);
    if (full) return skip(peer);
    advance(peer);
  }

  void gone(const Item& item) noexcept {
    const Peer peer = Peer::of(parts_.host(), item);
    Order* const order = peers_.find(peer);
    if (order == nullptr || order->going != &item) return;
    order->going = nullptr;
    if (!order->held.empty() && !parts_.events().raise(*next_, Raise::asynchronous, peer)) advance(peer);
  }

  /// Lets go what may: one at a time.
  void advance(const Peer& peer) noexcept {
    for (;;) {
      Order* const order = peers_.find(peer);
      if (order == nullptr) return;
      const bool goes = order->going == nullptr && !order->held.empty() && order->held.front().number == order->next;
      if (!goes) return wait(peer, *order);
      const ItemRef item = std::move(order->held.front().item);
      order->held.erase(order->held.begin());
      ++order->next;
      if (!item->in_bag()) continue;
      order->going = item.get();
      parts_.bag().set_send_bit(bit_, item);
    }
  }

  void wait(const Peer& peer, Order& order) noexcept {
    if (order.held.empty()) {
      parts_.events().cancel_timer(std::exchange(order.timer, 0));
    } else if (order.timer == 0) {
      order.timer = parts_.events().set_timer(*impatient_, patience_, Repeat::once, peer);
    }
  }

  /// Does without those that are missing before the first that is held, and without waiting for the one that is going.
  void skip(const Peer& peer) noexcept {
    Order* const order = peers_.find(peer);
    if (order == nullptr) return;
    parts_.events().cancel_timer(std::exchange(order->timer, 0));
    order->going = nullptr;
    if (!order->held.empty()) order->next = order->held.front().number;
    advance(peer);
  }

  MicroParts parts_;
  const SendBit bit_;
  const std::size_t hold_;
  const Duration patience_;
  const Raisable<Peer>* const next_;
  const Raisable<Peer>* const impatient_;
  PeerTable<Order> peers_;
};

}  // namespace

MicroKind fifo_kind() {
  MicroKind kind;
  kind.name = "FIFO";
  kind.summary = "a peer's messages in the order in which it has sent them";
  kind.imports = {kMessageInsertedIntoBag.name, kMessagePoppedFromCp.name, kMessageDeletedFromBag.name};
  kind.needs = {{"NUMBER"}};
  kind.options = with_peer_options(
      {{"patience", OptionType::duration, "after which it does without a message that is missing; 5s"},
       {"hold", OptionType::number, "how many messages of a peer it holds up; 256"}});
  kind.make = make_micro<Fifo>;
  return kind;
}

}  // namespace lrpc::netrpc::composite
