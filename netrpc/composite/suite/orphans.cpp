// AVOID_INTERFERENCE and TERMINATE_ORPHANS: what becomes of the requests of a client that has crashed (§4.2: orphan
// computations).
#include <optional>
#include <utility>
#include <vector>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

namespace {

/// When a client's life began, by its clock, in nanoseconds: a later life is greater.
using Life = std::uint64_t;

enum class Policy : std::uint8_t { avoid, terminate };
constexpr EventName<ItemRef> kGo{"Go"};  ///< No orphan is left: this request may begin.

class Orphans final : public MicroProtocol {
 public:
  Orphans(MicroParts& parts, Policy policy)
      : parts_(parts),
        policy_(policy),
        bit_(parts.send_bit()),
        hold_(parts.options.number("hold", 256)),
        life_(parts.attribute<Life>("life", Visibility::of_owner, InHeader::yes)),
        go_(parts.own(kGo, [this](const ItemRef& item) { parts_.bag().set_send_bit(bit_, item); })),
        clients_(peer_table<Peer, Client>(parts, kReceiversRemember)) {
    parts_.handle(kMessageInsertedIntoBag, [this](const ItemRef& item) { inserted(item); });
    parts_.handle(kRequestEnded, [this](const ItemRef& item) { ended(item); });
    if (policy_ == Policy::terminate) parts_.handle(kSuspectHostDead, [this](const Peer& peer) { mark(peer, false); });
    parts_.later([this](MicroParts& all) { type_.emplace(all.public_attribute<CallType>(kCallType)); });
  }

 private:
  /// Of one client: its requests that have come and have not ended.
  struct Client {
    Life life = 0;
    std::size_t present = 0;  ///< Requests of this life.
    std::vector<ItemRef> requests{};
    [[nodiscard]] bool busy() const noexcept { return !requests.empty(); }
    [[nodiscard]] bool has_orphans() const noexcept { return present != requests.size(); }
  };

  void inserted(const ItemRef& item) noexcept {
    const CallType type = (*type_)(*item);
    if (item->direction == Direction::up && policy_ == Policy::terminate) mark(Peer::of(parts_.host(), *item), true);
    if (item->direction == Direction::down && type == CallType::request) life_.set(*item, life_here_);
    const Item* const asked = policy_ == Policy::terminate ? item->answers().get() : nullptr;
    const Client* const asker = asked != nullptr ? clients_.find(Peer::of(parts_.host(), *asked)) : nullptr;
    if (asker != nullptr && life_(*asked) != asker->life) parts_.bag().erase(item);
    if (item->direction == Direction::up && type == CallType::request) return request(item);
    parts_.bag().set_send_bit(bit_, item);
  }

  void request(const ItemRef& item) noexcept {
    if (!item->in_bag()) return;
    const Peer peer = Peer::of(parts_.host(), *item);
    const Life life = life_(*item);
    Client* client = clients_.find_or_make(peer);
    if (client == nullptr) return parts_.bag().erase(item, Errc::limit_reached);
    if (life < client->life) return parts_.bag().erase(item);
    if (std::exchange(client->life, life) != life) {
      client->present = 0;
      end_others(peer, life);
      if (policy_ == Policy::terminate) mark(peer, true);
      client = clients_.find(peer);
    }
    if (client == nullptr || client->present >= hold_ || !attempt([&] { client->requests.push_back(item); }))
      return parts_.bag().erase(item, Errc::limit_reached);
    ++client->present;
    if (policy_ == Policy::terminate || !client->has_orphans()) parts_.bag().set_send_bit(bit_, item);
  }

  /// Deletes the requests of earlier lives that have not gone up, so that they never begin.
  void end_others(const Peer& peer, Life life) noexcept {
    for (std::size_t i = 0;;) {
      Client* const client = clients_.find(peer);
      if (client == nullptr || i >= client->requests.size()) return;
      const ItemRef item(client->requests[i].get());
      if (life_(*item) == life || item->has_left()) {
        ++i;
      } else {
        std::erase(client->requests, item);
        parts_.bag().erase(item);
      }
    }
  }

  /// Marks a client's requests as orphans; not those of its present life if it is `there`: it has been heard.
  void mark(const Peer& peer, bool there) noexcept {
    const Client* const client = clients_.find(peer);
    if (client == nullptr) return;
    for (const ItemRef& one : client->requests) MicroParts::mark_orphan(one, !there || life_(*one) != client->life);
  }

  void ended(const ItemRef& item) noexcept {
    const Peer peer = Peer::of(parts_.host(), *item);
    Client* client = clients_.find(peer);
    if (client == nullptr || std::erase(client->requests, item) == 0) return;
    if (life_(*item) == client->life) --client->present;
    if (policy_ == Policy::terminate) return;  // none waits
    // The last orphan has ended: now those of the present life begin, and none waits for another.
    for (std::size_t i = 0; client != nullptr && !client->has_orphans() && i < client->requests.size(); ++i) {
      const ItemRef one(client->requests[i]);
      if (one->has_left()) continue;                          // it has begun
      parts_.events().raise(*go_, Raise::asynchronous, one);  // or now, without memory
      client = clients_.find(peer);
    }
  }

  MicroParts parts_;
  const Policy policy_;
  const SendBit bit_;
  const std::size_t hold_;
  const Life life_here_ = Life(std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  Attribute<Life> life_;
  const Raisable<ItemRef>* const go_;
  std::optional<PublicAttribute<CallType>> type_;
  PeerTable<Peer, Client> clients_;
};

MicroKind orphans_kind(std::string name, std::string summary, Policy policy) {
  MicroKind kind{.name = std::move(name),
                 .summary = std::move(summary),
                 .imports = {kMessageInsertedIntoBag.name, kRequestEnded.name},
                 .needs = {{"GRPC"}},
                 .excludes = {policy == Policy::avoid ? "TERMINATE_ORPHANS" : "AVOID_INTERFERENCE"},
                 .options = with_peer_options({{"hold", OptionType::number,
                                                "how many requests of a client are there at a time; 256", false, "1"}}),
                 .make = [policy](MicroParts& parts) { return std::make_unique<Orphans>(parts, policy); }};
  if (policy == Policy::terminate) kind.may_import = {kSuspectHostDead.name};
  return kind;
}

}  // namespace

MicroKind avoid_interference_kind() {
  return orphans_kind("AVOID_INTERFERENCE", "a client's requests wait for those of its life before", Policy::avoid);
}
MicroKind terminate_orphans_kind() {
  return orphans_kind("TERMINATE_ORPHANS", "requests of clients that have failed are given up", Policy::terminate);
}

}  // namespace lrpc::netrpc::composite
