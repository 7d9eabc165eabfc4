// UNIQUE: of a message that arrives several times, only the first copy goes on.
#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/suite/window.h"

namespace lrpc::netrpc::composite {

namespace {

class Unique final : public MicroProtocol {
 public:
  explicit Unique(MicroParts& parts)
      : parts_(parts),
        first_(parts.attribute<bool>("first")),
        flows_(peer_table<Flow, Seen>(parts, kReceiversRemember)) {
    const Duration remembers = parts.options.duration("idle", std::chrono::seconds(60)) * kReceiversRemember;
    parts_.exported_procedure(kRemembers, [remembers] { return remembers; });
    parts_.later([this](MicroParts& all) {
      const Numbers numbers(all);
      // A message that was dropped for lack of room comes again, so its number is forgotten; but not if a copy came
      // before, which may have gone up.
      all.handle(
          kMessageDeletedFromBag,
          [this, numbers](const ItemRef& item) {
            Seen* const seen = flows_.find(numbers.flow(*item));
            if (seen != nullptr) seen->window.remove(numbers.number(*item));
          },
          [this](const ItemRef& item) {
            return first_(*item) && !item->has_left() && item->outcome() == Errc::limit_reached;
          });
      all.handle(
          kMessageInsertedIntoBag,
          [this, numbers](const ItemRef& item) { inserted(item, numbers.flow(*item), numbers.number(*item)); },
          [numbers](const ItemRef& item) { return numbers.came(*item); });
    });
  }

 private:
  struct Seen {
    Window window;
    [[nodiscard]] static bool busy() noexcept { return false; }
  };

  /// Another handler may have deleted `item` already; with threads, even between this handler's guard and this call.
  void inserted(const ItemRef& item, const Flow& flow, std::uint64_t number) noexcept {
    if (!item->in_bag()) return;
    Seen* const seen = flows_.find_or_make(flow);
    if (seen == nullptr) return parts_.bag().erase(item, Errc::limit_reached);
    if (!seen->window.add(number)) return parts_.bag().erase(item);
    first_.set(*item, true);
  }

  MicroParts parts_;
  Attribute<bool> first_;  ///< This copy of the message has added its number to the window.
  PeerTable<Flow, Seen> flows_;
};

}  // namespace

MicroKind unique_kind() {
  return {.name = "UNIQUE",
          .summary = "drops messages that have arrived before",
          .exports = {kRemembers.name},
          .imports = {kMessageInsertedIntoBag.name, kMessageDeletedFromBag.name},
          .needs = {{"NUMBER"}},
          .at_most_once = true,
          .options = with_peer_options(),
          .make = make_micro<Unique>};
}

}  // namespace lrpc::netrpc::composite
