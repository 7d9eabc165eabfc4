// MEMBERSHIP: who belongs to the group: whoever has sent something, until it is suspected (§3.5, Figure 3).
#include <algorithm>

#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

class Membership final : public MicroProtocol {
 public:
  explicit Membership(MicroParts& parts) : parts_(parts), change_(parts.exported(kMembershipChange)) {
    const std::size_t most = parts.options.number("members", 256);
    members_.reserve(std::min<std::size_t>(most, kMost));
    parts_.exported_procedure(kGetGroup, [this] { return members_; });
    parts_.handle(
        kMessageInsertedIntoBag, [this](const ItemRef& item) { heard(Peer::of(parts_.host(), *item)); },
        [](const ItemRef& item) { return item->direction == Direction::up; });
    parts_.handle(kSuspectHostDead, [this](const Peer& peer) { suspected(peer); });
  }

 private:
  static constexpr std::size_t kMost = 65536;

  void heard(const Peer& peer) noexcept {
    if (members_.size() == members_.capacity() || std::ranges::find(members_, peer) != members_.end()) return;
    members_.push_back(peer);
    parts_.events().raise(*change_, Raise::asynchronous, peer, MembershipChange::joined);
  }
  void suspected(const Peer& peer) noexcept {
    if (std::erase(members_, peer) != 0)
      parts_.events().raise(*change_, Raise::asynchronous, peer, MembershipChange::failed);
  }

  MicroParts parts_;
  const Raisable<Peer, MembershipChange>* const change_;
  std::vector<Peer> members_;  ///< Has its memory from the beginning.
};

}  // namespace

MicroKind membership_kind() {
  MicroKind kind;
  kind.name = "MEMBERSHIP";
  kind.summary = "knows who belongs to the group";
  kind.exports = {kMembershipChange.name, kGetGroup.name};
  kind.imports = {kMessageInsertedIntoBag.name, kSuspectHostDead.name};
  kind.options = {{"members", OptionType::number, "how many there can be; 256"}};
  kind.make = make_micro<Membership>;
  return kind;
}

}  // namespace lrpc::netrpc::composite
