// NUMBER: counts the messages to each peer.
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

class Number final : public MicroProtocol {
 public:
  explicit Number(MicroParts& parts)
      : parts_(parts),
        number_(parts.attribute<std::uint64_t>(kNumber, Visibility::of_all, InHeader::yes)),
        stream_(parts.attribute<std::uint32_t>(kStream, Visibility::of_all, InHeader::yes)),
        peers_(peer_table<Peer, Count>(parts)) {
    const auto numbered = [](const ItemRef& item) { return item->direction == Direction::down && item->has_entered(); };
    parts_.handle(
        kMessageInsertedIntoBag, [this](const ItemRef& item) { number(item); }, numbered);
    // A message that was not sent leaves no gap in the numbers, for the receiver would wait for it.
    parts_.handle(
        kMessageDeletedFromBag,
        [this](const ItemRef& item) {
          const Errc outcome = item->outcome();
          const bool sent = item->has_left() && outcome != Errc::limit_reached && outcome != Errc::message_too_long &&
                            outcome != Errc::host_unreachable;
          if (!sent) take_back(*item);
        },
        numbered);
  }

 private:
  struct Count {
    std::uint64_t last = 0;
    std::uint32_t stream = 0;
    [[nodiscard]] static bool busy() noexcept { return false; }
  };

  /// Another handler may have deleted `item` already: then no message with the next number would be sent.
  void number(const ItemRef& item) noexcept {
    if (!item->in_bag()) return;
    Count* const count = peers_.find_or_make(Peer::of(parts_.host(), *item));
    if (count == nullptr) return parts_.bag().erase(item, Errc::limit_reached);
    while (count->stream == 0) count->stream = static_cast<std::uint32_t>(parts_.host().random());
    number_.set(*item, ++count->last);
    stream_.set(*item, count->stream);
  }

  void take_back(const Item& item) noexcept {
    Count* const count = peers_.find(Peer::of(parts_.host(), item));
    if (count != nullptr && count->stream == stream_(item) && count->last == number_(item)) --count->last;
  }

  MicroParts parts_;
  Attribute<std::uint64_t> number_;
  Attribute<std::uint32_t> stream_;
  PeerTable<Peer, Count> peers_;
};

}  // namespace

MicroKind number_kind() {
  return {.name = "NUMBER",
          .summary = "counts the messages to each peer",
          .imports = {kMessageInsertedIntoBag.name, kMessageDeletedFromBag.name},
          .options = with_peer_options(),
          .make = make_micro<Number>};
}

}  // namespace lrpc::netrpc::composite
