// MEMBERSHIP: the group's members are the peers that have sent something and are not suspected (§3.5, Figure 3).
#include <algorithm>

#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

class Membership final : public MicroProtocol {
 public:
  explicit Membership(MicroParts& parts)
      : parts_(parts),
        change_(parts.exported(kMembershipChange)),
        most_(parts.options.number("members", 256)),
        idle_(parts.options.duration("idle", std::chrono::seconds(60))) {
    members_.reserve(most_);
    failed_.reserve(most_);
    parts_.exported_procedure(kGetGroup, [this] {
      std::vector<Peer> all;
      for (const Member& one : members_) all.push_back(one.peer);
      return all;
    });
    parts_.exported_procedure(kHasFailed,
                              [this](const Peer& peer) { return std::ranges::find(failed_, peer) != failed_.end(); });
    parts_.handle(
        kMessageInsertedIntoBag, [this](const ItemRef& item) { heard(Peer::of(parts_.host(), *item)); },
        [](const ItemRef& item) { return item->direction == Direction::up; });
    parts_.handle(kSuspectHostDead, [this](const Peer& peer) { suspected(peer); });
  }

 private:
  struct Member {
    Peer peer;
    Time heard;
  };

  /// If there are `most_` members, a new one replaces the one that was silent longest, if that was for `idle_`.
  void heard(const Peer& peer) noexcept {
    std::erase(failed_, peer);
    const Time now = parts_.host().now();
    const auto known = std::ranges::find(members_, peer, &Member::peer);
    if (known != members_.end()) {
      known->heard = now;
      return;
    }
    if (members_.size() >= most_) {
      const auto silent = std::ranges::min_element(members_, {}, &Member::heard);
      if (now - silent->heard < idle_) return;
      remove(Peer(silent->peer));
    }
    members_.push_back({peer, now});
    parts_.events().raise(*change_, Raise::asynchronous, peer, MembershipChange::joined);
  }
  void suspected(const Peer& peer) noexcept {
    if (std::ranges::find(failed_, peer) == failed_.end()) {
      if (failed_.size() >= most_) failed_.erase(failed_.begin());
      failed_.push_back(peer);
    }
    remove(peer);
  }
  void remove(const Peer& peer) noexcept {
    if (std::erase_if(members_, [&](const Member& one) { return one.peer == peer; }) != 0)
      parts_.events().raise(*change_, Raise::asynchronous, peer, MembershipChange::failed);
  }

  MicroParts parts_;
  const Raisable<Peer, MembershipChange>* const change_;
  const std::size_t most_;
  const Duration idle_;
  // The memory of these is reserved in the constructor.
  std::vector<Member> members_;
  std::vector<Peer> failed_;  ///< The latest failures, the oldest first.
};

}  // namespace

MicroKind membership_kind() {
  return {.name = "MEMBERSHIP",
          .summary = "knows who belongs to the group",
          .exports = {kMembershipChange.name, kGetGroup.name, kHasFailed.name},
          .imports = {kMessageInsertedIntoBag.name, kSuspectHostDead.name},
          .needs = {{"ACK"}},
          .options = {{"members", OptionType::number, "how many there can be; 256", false, "1", "4096"},
                      {"idle", OptionType::duration, "after which a silent one gives way to a new one; 60s"}},
          .make = make_micro<Membership>};
}

}  // namespace lrpc::netrpc::composite
