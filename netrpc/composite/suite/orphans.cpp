// AVOID_INTERFERENCE and TERMINATE_ORPHANS: what becomes of the requests of a client that has crashed (§4.2: orphan
// computations).
#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

enum class Policy : std::uint8_t { avoid, terminate };

/// A client's lives are told apart by its host's boot identifiers, which its requests carry.
class Orphans final : public MicroProtocol {
 public:
  Orphans(MicroParts& parts, Policy policy)
      : parts_(parts),
        policy_(policy),
        bit_(parts.send_bit()),
        hold_(parts.options.number("hold", 256)),
        life_(parts.attribute<BootId>("life", Visibility::of_owner, InHeader::yes)),
        clients_(peer_table<Peer, Client>(parts, kReceiversRemember)) {
    parts_.handle(kMessageInsertedIntoBag, [this](const ItemRef& item) { inserted(item); });
    parts_.handle(kRequestEnded, [this](const ItemRef& item) { ended(item); });
    parts_.handle(
        kMessageDeletedFromBag, [this](const ItemRef& item) { ended(item); },
        [](const ItemRef& item) { return item->direction == Direction::up && !item->has_left(); });
    if (policy_ == Policy::terminate)
      parts_.handle(kSuspectHostDead, [this](const Peer& peer) { end_others(peer, 0); });
    parts_.later([this](MicroParts& all) { type_.emplace(all.public_attribute<CallType>(kCallType)); });
  }

 private:
  /// Of one client: its requests that have come and have not ended.
  struct Client {
    BootId life = 0;
    std::array<BootId, 4> before{};  ///< Lives that are over.
    std::vector<ItemRef> requests{};
    [[nodiscard]] bool busy() const noexcept { return !requests.empty(); }
  };

  void inserted(const ItemRef& item) noexcept {
    const CallType type = (*type_)(*item);
    if (item->direction == Direction::down && type == CallType::request) life_.set(*item, parts_.host().boot_id());
    if (item->answers() && item->answers()->is_orphan()) parts_.bag().erase(item);
    if (item->direction == Direction::up && type == CallType::request) return request(item);
    parts_.bag().set_send_bit(bit_, item);
  }

  void request(const ItemRef& item) noexcept {
    if (!item->in_bag()) return;
    const Peer peer = Peer::of(parts_.host(), *item);
    const BootId life = life_(*item);
    Client* client = clients_.find_or_make(peer);
    if (client == nullptr || client->requests.size() >= hold_) return parts_.bag().erase(item, Errc::limit_reached);
    if (life == 0 || std::ranges::find(client->before, life) != client->before.end()) return parts_.bag().erase(item);
    try {
      client->requests.push_back(item);
    } catch (const std::bad_alloc&) {
      return parts_.bag().erase(item, Errc::limit_reached);
    }
    if (life != client->life) {
      std::ranges::rotate(client->before, client->before.end() - 1);
      client->before.front() = std::exchange(client->life, life);
      end_others(peer, life);
    }
    go_on(peer);
  }

  /// Of other lives, what has not begun does not. Nobody waits for the rest.
  void end_others(const Peer& peer, BootId life) noexcept {
    for (std::size_t i = 0;;) {
      Client* const client = clients_.find(peer);
      if (client == nullptr || i >= client->requests.size()) return;
      const ItemRef item(client->requests[i].get());
      if (life_(*item) == life || item->has_left()) {
        if (life_(*item) != life && policy_ == Policy::terminate) MicroParts::mark_orphan(item);
        ++i;
      } else {
        std::erase(client->requests, item);
        parts_.bag().erase(item);
      }
    }
  }

  /// Requests of the present life begin, if they may.
  void go_on(const Peer& peer) noexcept {
    for (std::size_t i = 0;; ++i) {
      Client* const client = clients_.find(peer);
      if (client == nullptr || i >= client->requests.size()) return;
      const BootId life = client->life;
      const auto others = [&](const ItemRef& one) { return life_(*one) != life; };
      if (policy_ == Policy::avoid && std::ranges::any_of(client->requests, others)) return;
      parts_.bag().set_send_bit(bit_, ItemRef(client->requests[i]));
    }
  }

  void ended(const ItemRef& item) noexcept {
    const Peer peer = Peer::of(parts_.host(), *item);
    Client* const client = clients_.find(peer);
    if (client != nullptr && std::erase(client->requests, item) != 0 && policy_ == Policy::avoid) go_on(peer);
  }

  MicroParts parts_;
  const Policy policy_;
  const SendBit bit_;
  const std::size_t hold_;
  Attribute<BootId> life_;
  std::optional<PublicAttribute<CallType>> type_;
  PeerTable<Peer, Client> clients_;
};

MicroKind orphans_kind(std::string name, std::string summary, Policy policy) {
  MicroKind kind;
  kind.name = std::move(name);
  kind.summary = std::move(summary);
  kind.imports = {kMessageInsertedIntoBag.name, kMessageDeletedFromBag.name, kRequestEnded.name};
  if (policy == Policy::terminate) kind.may_import = {kSuspectHostDead.name};
  kind.needs = {{"GRPC"}};
  kind.options =
      with_peer_options({{"hold", OptionType::number, "how many requests of a client are there at a time; 256"}});
  kind.make = [policy](MicroParts& parts) -> Result<std::unique_ptr<MicroProtocol>> {
    return std::unique_ptr<MicroProtocol>(std::make_unique<Orphans>(parts, policy));
  };
  return kind;
}

}  // namespace

MicroKind avoid_interference_kind() {
  MicroKind kind =
      orphans_kind("AVOID_INTERFERENCE", "a client's requests wait for those of its life before", Policy::avoid);
  kind.excludes = {"TERMINATE_ORPHANS"};
  return kind;
}
MicroKind terminate_orphans_kind() {
  MicroKind kind =
      orphans_kind("TERMINATE_ORPHANS", "requests of clients that have failed are given up", Policy::terminate);
  kind.excludes = {"AVOID_INTERFERENCE"};
  return kind;
}

}  // namespace lrpc::netrpc::composite
