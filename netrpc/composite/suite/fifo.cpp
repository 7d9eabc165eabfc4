// FIFO: a peer's messages leave upwards in the order in which it has pushed them.
#include <algorithm>
#include <utility>
#include <vector>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

namespace {

constexpr EventName<Flow> kNext{"Next"};          ///< Perhaps another message may leave.
constexpr EventName<Flow> kPatience{"Patience"};  ///< Messages have been held for `patience`.

class Fifo final : public MicroProtocol {
 public:
  explicit Fifo(MicroParts& parts)
      : parts_(parts),
        bit_(parts.send_bit()),
        hold_(parts.options.number("hold", 256)),
        patience_(parts.options.duration("patience", std::chrono::seconds(5))),
        next_(parts.own(kNext, [this](const Flow& flow) { advance(flow); })),
        impatient_(parts.own(kPatience, [this](const Flow& flow) { skip(flow); })),
        flows_(peer_table<Flow, Order>(parts, kReceiversRemember)) {
    parts_.later([this](MicroParts& all) {
      const Numbers numbers(all);
      first_ = all.procedure(kComesFirst);
      all.handle(kMessageInsertedIntoBag, [this, numbers](const ItemRef& item) {
        if (!numbers.came(*item)) return parts_.bag().set_send_bit(bit_, item);
        if (item->in_bag()) arrived(item, numbers.flow(*item), numbers.number(*item));
      });
      const auto came = [numbers](const ItemRef& item) { return numbers.came(*item); };
      const auto is_gone = [this, numbers](const ItemRef& item) {
        gone(*item, numbers.flow(*item), numbers.number(*item));
      };
      all.handle(kMessagePoppedFromCp, is_gone, came);
      all.handle(kMessageDeletedFromBag, is_gone, came);
    });
  }

 private:
  struct Held {
    std::uint64_t number;
    ItemRef item;
    HostShares::Part bytes;  ///< Of this host's buffers.
  };
  struct Order {
    std::uint64_t next = 0;       ///< 0: none has come yet.
    const Item* going = nullptr;  ///< Its bit is set; the protocol above has not returned, or another bit is missing.
    Events::TimerId timer = 0;
    std::vector<Held> held{};  ///< Sorted by number, none below `next`.
    [[nodiscard]] bool busy() const noexcept { return going != nullptr || !held.empty(); }
  };

  void arrived(const ItemRef& item, const Flow& flow, std::uint64_t number) noexcept {
    const std::size_t bytes = std::max(item->message.footprint(), std::size_t{1});
    Order* const order = flows_.find_or_make(flow);
    if (order == nullptr) return parts_.bag().erase(item, Errc::limit_reached);
    // If a flow begins with a high number, this host has forgotten it: nothing before that number will come any more.
    const std::uint64_t said = first_ != nullptr ? (*first_)(*item) : 0;
    const std::uint64_t from = std::clamp(said, std::uint64_t{1}, number);
    if (order->next == 0) order->next = number > hold_ && (said == 0 || number - from >= hold_) ? number : from;
    const auto at = std::ranges::lower_bound(order->held, number, {}, &Held::number);
    if (number < order->next || (at != order->held.end() && at->number == number)) return parts_.bag().erase(item);
    // The one for which others wait is not held itself: it goes at once, and makes room.
    const bool goes = order->going == nullptr && number == order->next;
    if (!goes && !held_.has_room(host_of(flow), bytes, parts_.host().pool().limit() / kShareOfBuffers))
      return parts_.bag().erase(item, Errc::limit_reached);
    const bool full = order->held.size() >= hold_;
    if (full && order->going != nullptr) return parts_.bag().erase(item, Errc::limit_reached);
    if (!attempt([&] { order->held.insert(at, {number, item, held_.take(host_of(flow), bytes)}); }))
      return parts_.bag().erase(item, Errc::limit_reached);
    full ? skip(flow) : advance(flow);
  }

  /// A message that was dropped for lack of room comes again: until then it is missing.
  void gone(const Item& item, const Flow& flow, std::uint64_t number) noexcept {
    Order* const order = flows_.find(flow);
    if (order == nullptr) return;
    const bool comes_again = !item.has_left() && item.outcome() == Errc::limit_reached;
    const auto at = std::ranges::find(order->held, &item, [](const Held& one) { return one.item.get(); });
    if (comes_again && at != order->held.end()) order->held.erase(at);
    if (order->going != &item) return;
    order->going = nullptr;
    if (comes_again) order->next = number;
    if (!order->held.empty()) parts_.events().raise(*next_, Raise::asynchronous, flow);
  }

  /// Sets the bit of the next messages in order, one at a time.
  void advance(const Flow& flow) noexcept {
    for (;;) {
      Order* const order = flows_.find(flow);
      if (order == nullptr) return;
      const bool goes = order->going == nullptr && !order->held.empty() && order->held.front().number == order->next;
      if (!goes) return wait(flow, *order);
      const ItemRef item = std::move(order->held.front().item);
      order->held.erase(order->held.begin());
      ++order->next;
      parts_.events().cancel_timer(std::exchange(order->timer, 0));
      if (!item->in_bag()) continue;
      order->going = item.get();
      parts_.bag().set_send_bit(bit_, item);
    }
  }

  void wait(const Flow& flow, Order& order) noexcept {
    if (order.held.empty()) {
      parts_.events().cancel_timer(std::exchange(order.timer, 0));
    } else if (order.timer == 0) {
      order.timer = parts_.events().set_timer(*impatient_, patience_, Repeat::once, flow);
    }
  }

  /// Skips the messages that are missing before the first held one, and does not wait for the one that is going.
  void skip(const Flow& flow) noexcept {
    Order* const order = flows_.find(flow);
    if (order == nullptr) return;
    parts_.events().cancel_timer(std::exchange(order->timer, 0));
    order->going = nullptr;
    if (!order->held.empty()) order->next = order->held.front().number;
    advance(flow);
  }

  MicroParts parts_;
  const SendBit bit_;
  const std::size_t hold_;
  const Duration patience_;
  const Raisable<Flow>* const next_;
  const Raisable<Flow>* const impatient_;
  const std::function<std::uint64_t(const Item&)>* first_ = nullptr;
  HostShares held_;  ///< Outlives the flows.
  PeerTable<Flow, Order> flows_;
};

}  // namespace

MicroKind fifo_kind() {
  return {.name = "FIFO",
          .summary = "a peer's messages in the order in which it has sent them",
          .imports = {kMessageInsertedIntoBag.name, kMessagePoppedFromCp.name, kMessageDeletedFromBag.name},
          .may_import = {kComesFirst.name},
          .needs = {{"NUMBER"}},
          .options = with_peer_options(
              {{"patience", OptionType::duration, "after which it does without a message that is missing; 5s"},
               {"hold", OptionType::number, "how many messages of a peer it holds up; 256", false, "1"}}),
          .make = make_micro<Fifo>};
}

}  // namespace lrpc::netrpc::composite
