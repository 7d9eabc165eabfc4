// ACK: acknowledges what arrives, sends again what is not acknowledged, and suspects who does not answer (§3.5,
// Figure 4).
#include <algorithm>
#include <new>

#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

enum class Type : std::uint8_t { data, acknowledgement };

struct Sent {
  Peer peer;
  std::uint64_t number = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept { return mix(peer.hash(), number); }
  friend bool operator==(const Sent&, const Sent&) = default;
};
constexpr EventName<Sent> kTimeout{"Timeout"};

class Ack final : public MicroProtocol {
 public:
  explicit Ack(MicroParts& parts)
      : parts_(parts),
        interval_(parts.options.duration("interval", std::chrono::milliseconds(50))),
        tries_(parts.options.number("tries", 8)),
        most_(parts.options.number("most", 1024)),
        type_(parts.attribute<Type>("type", Visibility::of_owner, InHeader::yes)),
        acknowledges_(parts.attribute<std::uint64_t>("acknowledges", Visibility::of_owner, InHeader::yes)),
        timeout_(parts.own(kTimeout, [this](const Sent& sent) { timed_out(sent); })),
        suspect_(parts.exported(kSuspectHostDead)) {
    parts_.later([this](MicroParts& all) {
      const auto number = all.public_attribute<std::uint64_t>(kNumber);
      const auto numbered = [number](Direction way) {
        return [number, way](const ItemRef& item) { return item->direction == way && number(*item) != 0; };
      };
      all.handle(
          kMessageReadyToBeSent, [this, number](const ItemRef& item) { keep(item, number(*item)); },
          [number](const ItemRef& item) {
            return item->direction == Direction::down && item->has_entered() && number(*item) != 0;
          });
      all.handle(
          kMessageDeletedFromBag,
          [this, number](const ItemRef& item) {
            if (!item->has_left() && item->has_entered()) forget({Peer::of(parts_.host(), *item), number(*item)});
          },
          numbered(Direction::down));
      all.handle(
          kMessageInsertedIntoBag, [this, number](const ItemRef& item) { acknowledge(item, number(*item)); },
          numbered(Direction::up));
    });
    parts_.handle(
        kMessageInsertedIntoBag,
        [this](const ItemRef& item) {
          forget({Peer::of(parts_.host(), *item), acknowledges_(*item)});
          parts_.bag().erase(item);
        },
        [this](const ItemRef& item) { return item->direction == Direction::up && type_(*item) != Type::data; });
  }

 private:
  struct Kept {
    ItemRef item;  ///< As it was when it left.
    std::uint64_t tries = 0;
    Events::TimerId timer = 0;
  };

  void keep(const ItemRef& item, std::uint64_t number) noexcept {
    const Sent sent{Peer::of(parts_.host(), *item), number};
    Kept kept{parts_.bag().copy_of(item), 1, 0};
    try {
      if (kept.item && kept_.size() < most_)
        kept.timer = parts_.events().set_timer(*timeout_, interval_, Repeat::once, sent);
      if (kept.timer != 0) kept_.bind(sent, std::move(kept));
    } catch (const std::bad_alloc&) {
      parts_.events().cancel_timer(std::exchange(kept.timer, 0));
    }
    if (kept_.resolve(sent) == nullptr) parts_.bag().erase(item, Errc::limit_reached);
  }

  void acknowledge(const ItemRef& item, std::uint64_t number) noexcept {
    const ItemRef answer = parts_.bag().new_item(item->session(), Direction::down, Message(parts_.host().pool()));
    if (!answer) return;
    type_.set(*answer, Type::acknowledgement);
    acknowledges_.set(*answer, number);
    parts_.bag().insert(answer);
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
    parts_.events().raise(*suspect_, Raise::asynchronous, sent.peer);
  }

  void forget(const Sent& sent) noexcept {
    Kept* const kept = kept_.resolve(sent);
    if (kept == nullptr) return;
    parts_.events().cancel_timer(kept->timer);
    kept_.unbind(sent);
  }

  MicroParts parts_;
  const Duration interval_;
  const std::uint64_t tries_;
  const std::uint64_t most_;
  Attribute<Type> type_;
  Attribute<std::uint64_t> acknowledges_;
  const Raisable<Sent>* const timeout_;
  const Raisable<Peer>* const suspect_;
  Map<Sent, Kept> kept_;
};

}  // namespace

MicroKind ack_kind() {
  MicroKind kind;
  kind.name = "ACK";
  kind.summary = "sends again what is not acknowledged";
  kind.exports = {kSuspectHostDead.name};
  kind.imports = {kMessageInsertedIntoBag.name, kMessageReadyToBeSent.name, kMessageDeletedFromBag.name};
  kind.needs = {{"NUMBER"}};
  kind.options = {
      {"interval", OptionType::duration, "until a message is sent again, later up to eight times that; 50ms"},
      {"tries", OptionType::number, "how often it is sent; 8"},
      {"most", OptionType::number, "how many messages may wait for acknowledgement; 1024"}};
  kind.make = make_micro<Ack>;
  return kind;
}

}  // namespace lrpc::netrpc::composite
