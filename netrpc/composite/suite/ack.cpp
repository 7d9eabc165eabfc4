// ACK: acknowledges what arrives, retransmits what is not acknowledged, and suspects peers that do not answer (§3.5,
// Figure 4).
#include "netrpc/composite/suite/unacknowledged.h"

namespace lrpc::netrpc::composite {

namespace {

enum class Type : std::uint8_t { data, acknowledgement };

constexpr EventName<Sent> kTimeout{"Timeout"};
constexpr EventName<ItemRef> kArrived{"Arrived"};

class Ack final : public MicroProtocol {
 public:
  explicit Ack(MicroParts& parts)
      : parts_(parts),
        type_(parts.attribute<Type>("type", Visibility::of_owner, InHeader::yes)),
        of_stream_(parts.attribute<std::uint32_t>("stream", Visibility::of_owner, InHeader::yes)),
        of_number_(parts.attribute<std::uint64_t>("number", Visibility::of_owner, InHeader::yes)),
        acknowledged_(parts.attribute<bool>("acknowledged")),
        arrived_(parts.own(kArrived, [this](const ItemRef& item) { acknowledge(item); })),
        suspect_(parts.exported(kSuspectHostDead)),
        too_long_(parts.exported(kTooLongAgain)),
        sent_(parts, parts.own(kTimeout, [this](const Sent& sent) { timed_out(sent); })) {
    parts_.exported_procedure(kComesFirst, [this](const Item& item) { return of_number_(item); });
    parts_.later([this](MicroParts& all) { handle(all); });
  }

 private:
  void handle(MicroParts& all) {
    // A message that the receiver's UNIQUE has forgotten must not arrive again. So it is retransmitted for at most
    // half of UNIQUE's time; the other half is for delays on the way.
    if (const auto* const remembers = all.procedure(kRemembers)) sent_.repeat_for((*remembers)() / 2);
    const Numbers& numbers = numbers_.emplace(all);
    const auto sent_of = [numbers](const ItemRef& item) { return Sent{numbers.flow(*item), numbers.number(*item)}; };
    const auto leaves = [numbers](const ItemRef& item) { return numbers.leaves(*item); };
    const auto ours = [leaves](const ItemRef& item) { return leaves(item) && item->has_entered(); };
    all.handle(
        kMessageReadyToBeSent, [this, sent_of](const ItemRef& item) { keep(item, sent_of(item)); }, ours);
    const auto says_first = [this, sent_of](const ItemRef& item) {
      of_number_.set(*item, sent_.first(sent_of(item).flow));
    };
    all.handle(kMessageReadyToBeSent, says_first, leaves);
    // What has not left, and what the layer below has refused, is not sent again.
    all.handle(
        kMessageDeletedFromBag,
        [this, sent_of](const ItemRef& item) {
          if (!item->has_left() || item->outcome() != Errc::ok) sent_.forget(sent_of(item));
        },
        ours);
    all.handle(
        kMessageDeletedFromBag, [this, sent_of](const ItemRef& item) { too_long(sent_of(item)); },
        [leaves](const ItemRef& item) {
          return leaves(item) && item->outcome() == Errc::message_too_long && !item->has_entered();
        });
    const auto data = [numbers](const ItemRef& item) { return numbers.came(*item); };
    const auto later = [this](const ItemRef& item) { parts_.events().raise(*arrived_, Raise::asynchronous, item); };
    all.handle(kMessageInsertedIntoBag, later, data);
    all.handle(
        kMessageReadyToBeSent, [this](const ItemRef& item) { acknowledge(item); }, data);
    all.handle(kMessageDeletedFromBag, later,
               [this, data](const ItemRef& item) { return data(item) && !item->has_left() && !acknowledged_(*item); });
    all.handle(
        kMessageInsertedIntoBag,
        [this](const ItemRef& item) {
          if (type_(*item) == Type::acknowledgement)
            sent_.acknowledged({{Peer::of(parts_.host(), *item), of_stream_(*item)}, of_number_(*item)});
          parts_.bag().erase(item);
        },
        [this, numbers](const ItemRef& item) {
          return item->direction == Direction::up && numbers.number(*item) == 0 && type_(*item) != Type::data;
        });
  }

  // ---- who sends ----

  void keep(const ItemRef& item, const Sent& sent) noexcept {
    if (item->in_bag() && !sent_.keep(item, sent)) parts_.bag().erase(item, Errc::limit_reached);
  }

  void timed_out(const Sent& sent) noexcept {
    if (!sent_.timed_out(sent)) parts_.events().raise(*suspect_, Raise::asynchronous, sent.flow.peer);
  }

  /// A retransmission was too long for the layer below, because a link now carries less.
  void too_long(const Sent& sent) noexcept {
    const ItemRef kept = sent_.kept(sent);
    if (!kept) return;
    const std::size_t before = kept->message.size();
    parts_.events().raise(*too_long_, Raise::synchronous, kept);
    kept->message.size() < before ? parts_.bag().insert(parts_.bag().copy_of(kept)) : sent_.forget(sent);
  }

  // ---- who receives ----

  /// Acknowledges a message once: before it goes up, or when all handlers of its insertion have run. One that was
  /// dropped for lack of room is not acknowledged, so that it is sent again. With threads, those handlers may not have
  /// finished (is_new()): then a later event acknowledges it.
  void acknowledge(const ItemRef& item) noexcept {
    if (acknowledged_(*item) || item->is_new() || item->outcome() == Errc::limit_reached) return;
    acknowledged_.set(*item, true);
    const ItemRef answer = parts_.bag().new_item(item->session(), Direction::down, Message(parts_.host().pool()));
    if (!answer) return;
    type_.set(*answer, Type::acknowledgement);
    of_stream_.set(*answer, numbers_->stream(*item));
    of_number_.set(*answer, numbers_->number(*item));
    parts_.bag().insert(answer);
  }

  MicroParts parts_;
  std::optional<Numbers> numbers_;
  Attribute<Type> type_;
  Attribute<std::uint32_t> of_stream_;
  Attribute<std::uint64_t> of_number_;  ///< Of a message with a number: kComesFirst.
  Attribute<bool> acknowledged_;
  const Raisable<ItemRef>* const arrived_;
  const Raisable<Peer>* const suspect_;
  const Raisable<ItemRef>* const too_long_;
  Unacknowledged sent_;
};

}  // namespace

MicroKind ack_kind() {
  return {
      .name = "ACK",
      .summary = "sends again what is not acknowledged",
      .exports = {kSuspectHostDead.name, kTooLongAgain.name, kComesFirst.name},
      .imports = {kMessageInsertedIntoBag.name, kMessageReadyToBeSent.name, kMessageDeletedFromBag.name},
      .may_import = {kRemembers.name},
      .needs = {{"NUMBER"}},
      .options = with_peer_options(
          {{"interval", OptionType::duration, "until a message is sent again, later up to eight times that; 50ms",
            false, "100us", "3600s"},
           {"tries", OptionType::number, "how often it is sent; 8", false, "1"},
           {"window", OptionType::number, "how many messages to a peer may wait for acknowledgement; 128", false, "1",
            "1024"},
           {"most", OptionType::number,
            "how many to all peers, half of it to those that never answered; of either one host has its fair share; "
            "1024",
            false, "2", "1048576"},
           {"memory", OptionType::number,
            "bytes of buffers that these take, of which one host has its fair share, and replies four times as much; "
            "16777216",
            false, "512", "1099511627776"}}),
      .make = make_micro<Ack>};
}

}  // namespace lrpc::netrpc::composite
