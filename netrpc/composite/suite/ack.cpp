// ACK: acknowledges what arrives, sends again what is not acknowledged, and suspects who does not answer (§3.5,
// Figure 4).
#include <algorithm>
#include <new>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/suite/window.h"

namespace lrpc::netrpc::composite {

namespace {

enum class Type : std::uint8_t { data, acknowledgement };

struct Sent {
  Flow flow;
  std::uint64_t number = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept { return mix(flow.hash(), number); }
  friend bool operator==(const Sent&, const Sent&) = default;
};
constexpr EventName<Sent> kTimeout{"Timeout"};
constexpr EventName<ItemRef> kArrived{"Arrived"};

class Ack final : public MicroProtocol {
 public:
  explicit Ack(MicroParts& parts)
      : parts_(parts),
        interval_(std::clamp<Duration>(parts.options.duration("interval", std::chrono::milliseconds(50)),
                                       std::chrono::microseconds(100), std::chrono::hours(1))),
        tries_(parts.options.number("tries", 8)),
        most_(parts.options.number("most", 1024)),
        window_(std::max<std::uint64_t>(1, parts.options.number("window", 128))),
        type_(parts.attribute<Type>("type", Visibility::of_owner, InHeader::yes)),
        of_stream_(parts.attribute<std::uint32_t>("stream", Visibility::of_owner, InHeader::yes)),
        of_number_(parts.attribute<std::uint64_t>("number", Visibility::of_owner, InHeader::yes)),
        acknowledged_(parts.attribute<bool>("acknowledged")),
        timeout_(parts.own(kTimeout, [this](const Sent& sent) { timed_out(sent); })),
        arrived_(parts.own(kArrived, [this](const ItemRef& item) { acknowledge(item); })),
        suspect_(parts.exported(kSuspectHostDead)),
        flights_(peer_table<Flow, Flight>(parts)) {
    parts_.later([this](MicroParts& all) { handle(all); });
  }

 private:
  struct Kept {
    ItemRef item;  ///< As it was when it left.
    std::uint64_t tries = 0;
    Events::TimerId timer = 0;
  };
  /// What of one flow is under way.
  struct Flight {
    std::uint64_t lowest = 1;  ///< That may not have been acknowledged.
    std::uint64_t next = 1;
    bool answered = false;  ///< The peer has acknowledged something: it is no forged address.
    [[nodiscard]] bool busy() const noexcept { return lowest != next; }
  };

  void handle(MicroParts& all) {
    const Numbers numbers(all);
    const auto sent_of = [numbers](const ItemRef& item) { return Sent{numbers.flow(*item), numbers.number(*item)}; };
    const auto ours = [numbers](const ItemRef& item) {
      return item->direction == Direction::down && item->has_entered() && numbers.number(*item) != 0;
    };
    all.handle(
        kMessageReadyToBeSent, [this, sent_of](const ItemRef& item) { keep(item, sent_of(item)); }, ours);
    // What has not left, and what the layer below has refused, is not sent again.
    all.handle(
        kMessageDeletedFromBag,
        [this, sent_of](const ItemRef& item) {
          if (!item->has_left() || item->outcome() != Errc::ok) forget(sent_of(item));
        },
        ours);
    const auto data = [numbers](const ItemRef& item) { return numbers.came(*item); };
    all.handle(
        kMessageInsertedIntoBag,
        [this, numbers](const ItemRef& item) {
          of_stream_.set(*item, numbers.stream(*item));
          of_number_.set(*item, numbers.number(*item));
          parts_.events().raise(*arrived_, Raise::asynchronous, item);
        },
        data);
    all.handle(
        kMessageReadyToBeSent, [this](const ItemRef& item) { acknowledge(item); }, data);
    all.handle(
        kMessageInsertedIntoBag,
        [this](const ItemRef& item) {
          if (type_(*item) == Type::acknowledgement)
            answered({{Peer::of(parts_.host(), *item), of_stream_(*item)}, of_number_(*item)});
          parts_.bag().erase(item);
        },
        [this, numbers](const ItemRef& item) {
          return item->direction == Direction::up && numbers.number(*item) == 0 && type_(*item) != Type::data;
        });
  }

  // ---- who sends ----

  void keep(const ItemRef& item, const Sent& sent) noexcept {
    if (!item->in_bag()) return;
    Flight* const flight = flights_.find_or_make(sent.flow);
    // A reply that is refused is lost. There are no more of them than requests that the protocol above works on.
    const std::uint64_t window = item->answers() ? std::max(window_, Window::kSize / 2) : window_;
    const std::uint64_t most = item->answers() ? 4 * most_ : flight != nullptr && flight->answered ? most_ : most_ / 2;
    const bool room =
        flight != nullptr && (!flight->busy() || sent.number - flight->lowest < window) && kept_.size() < most;
    Kept kept{room ? parts_.bag().copy_of(item) : ItemRef(), 1, 0};
    try {
      if (kept.item) kept.timer = parts_.events().set_timer(*timeout_, interval_, Repeat::once, sent);
      if (kept.timer != 0) {
        kept_.bind(sent, std::move(kept));
        if (!flight->busy()) flight->lowest = sent.number;
        flight->next = std::max(flight->next, sent.number + 1);
        return;
      }
    } catch (const std::bad_alloc&) {
      parts_.events().cancel_timer(kept.timer);
    }
    parts_.bag().erase(item, Errc::limit_reached);
  }

  void answered(const Sent& sent) noexcept {
    if (kept_.resolve(sent) == nullptr) return;
    if (Flight* const flight = flights_.find(sent.flow)) flight->answered = true;
    forget(sent);
  }

  void forget(const Sent& sent) noexcept {
    Kept* const kept = kept_.resolve(sent);
    if (kept == nullptr) return;
    parts_.events().cancel_timer(kept->timer);
    kept_.unbind(sent);
    Flight* const flight = flights_.find(sent.flow);
    if (flight == nullptr) return;
    while (flight->busy() && kept_.resolve({sent.flow, flight->lowest}) == nullptr) ++flight->lowest;
  }

  void timed_out(const Sent& sent) noexcept {
    Kept* const kept = kept_.resolve(sent);
    if (kept == nullptr) return;
    kept->timer = 0;
    if (kept->tries < tries_) {
      const Duration pause = interval_ * (1U << std::min<std::uint64_t>(kept->tries, 3));
      ++kept->tries;
      kept->timer = parts_.events().set_timer(*timeout_, pause, Repeat::once, sent);
      if (kept->timer != 0) return parts_.bag().insert(parts_.bag().copy_of(kept->item));
    }
    forget(sent);
    parts_.events().raise(*suspect_, Raise::asynchronous, sent.flow.peer);
  }

  // ---- who receives ----

  /// Once: before it goes up, or when all have seen it. What somebody had no room for is to come again.
  void acknowledge(const ItemRef& item) noexcept {
    if (acknowledged_(*item) || item->outcome() == Errc::limit_reached) return;
    acknowledged_.set(*item, true);
    const ItemRef answer = parts_.bag().new_item(item->session(), Direction::down, Message(parts_.host().pool()));
    if (!answer) return;
    type_.set(*answer, Type::acknowledgement);
    of_stream_.set(*answer, of_stream_(*item));
    of_number_.set(*answer, of_number_(*item));
    parts_.bag().insert(answer);
  }

  MicroParts parts_;
  const Duration interval_;
  const std::uint64_t tries_;
  const std::uint64_t most_;
  const std::uint64_t window_;
  Attribute<Type> type_;
  Attribute<std::uint32_t> of_stream_;
  Attribute<std::uint64_t> of_number_;
  Attribute<bool> acknowledged_;
  const Raisable<Sent>* const timeout_;
  const Raisable<ItemRef>* const arrived_;
  const Raisable<Peer>* const suspect_;
  Map<Sent, Kept> kept_;
  PeerTable<Flow, Flight> flights_;
};

}  // namespace

MicroKind ack_kind() {
  MicroKind kind;
  kind.name = "ACK";
  kind.summary = "sends again what is not acknowledged";
  kind.exports = {kSuspectHostDead.name};
  kind.imports = {kMessageInsertedIntoBag.name, kMessageReadyToBeSent.name, kMessageDeletedFromBag.name};
  kind.needs = {{"NUMBER"}};
  kind.options = with_peer_options(
      {{"interval", OptionType::duration, "until a message is sent again, later up to eight times that; 50ms"},
       {"tries", OptionType::number, "how often it is sent; 8"},
       {"window", OptionType::number, "how many messages to a peer may wait for acknowledgement; 128"},
       {"most", OptionType::number, "how many to all peers, half of it to those that never answered; 1024"}});
  kind.make = make_micro<Ack>;
  return kind;
}

}  // namespace lrpc::netrpc::composite
