// UNIQUE: of a message that arrives several times, the first goes on.
#include "netrpc/composite/suite/stream.h"
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

class Unique final : public MicroProtocol {
 public:
  explicit Unique(MicroParts& parts) : parts_(parts), peers_(peer_table<Seen>(parts)) {
    parts_.later([this](MicroParts& all) {
      const auto number = all.public_attribute<std::uint64_t>(kNumber);
      const auto stream = all.public_attribute<std::uint32_t>(kStream);
      all.handle(
          kMessageInsertedIntoBag,
          [this, number, stream](const ItemRef& item) {
            if (!is_first(*item, number(*item), stream(*item))) parts_.bag().erase(item);
          },
          [number](const ItemRef& item) { return item->direction == Direction::up && number(*item) != 0; });
    });
  }

 private:
  struct Seen {
    Streams streams;
    Window window;
    [[nodiscard]] static bool busy() noexcept { return false; }
  };

  bool is_first(const Item& item, std::uint64_t number, std::uint32_t stream) noexcept {
    Seen* const seen = peers_.find_or_make(Peer::of(parts_.host(), item));
    if (seen == nullptr) return false;
    const Streams::Belongs belongs = seen->streams.take(stream);
    if (belongs == Streams::Belongs::first) seen->window = {};
    return belongs != Streams::Belongs::late && seen->window.add(number);
  }

  MicroParts parts_;
  PeerTable<Seen> peers_;
};

}  // namespace

MicroKind unique_kind() {
  MicroKind kind;
  kind.name = "UNIQUE";
  kind.summary = "drops messages that have arrived before";
  kind.imports = {kMessageInsertedIntoBag.name};
  kind.needs = {{"NUMBER"}};
  kind.options = with_peer_options();
  kind.at_most_once = true;
  kind.make = make_micro<Unique>;
  return kind;
}

}  // namespace lrpc::netrpc::composite
