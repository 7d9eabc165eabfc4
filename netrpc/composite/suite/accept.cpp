// ONE_ACCEPT, ALL_ACCEPT and MAJORITY: how many members' replies a call needs (§4.2).
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

std::optional<Errc> one_accepts(const Tally& tally) {
  if (tally.answered != 0) return Errc::ok;
  if (tally.failed == tally.members) return Errc::call_failed;
  return {};
}

std::optional<Errc> all_accept(const Tally& tally) {
  if (tally.answered + tally.failed < tally.members) return {};
  return tally.answered != 0 ? Errc::ok : Errc::call_failed;
}

std::optional<Errc> majority_accepts(const Tally& tally) {
  if (tally.answered > tally.members / 2) return Errc::ok;
  if (tally.members - tally.failed <= tally.members / 2) return Errc::call_failed;
  return {};
}

namespace {

class Accept final : public MicroProtocol {
 public:
  Accept(MicroParts& parts, Decision decision) : parts_(parts), decided_(parts.exported(kCallDecided)) {
    parts_.handle(kMemberHeard, [this, decision](CallId call, const Tally& tally) {
      if (const auto outcome = decision(tally)) parts_.events().raise(*decided_, Raise::synchronous, call, *outcome);
    });
  }

 private:
  MicroParts parts_;
  const Raisable<CallId, Errc>* const decided_;
};

MicroKind accept_kind(std::string name, std::string summary, Decision decision, std::vector<std::string_view> others) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .exports = {kCallDecided.name},
          .imports = {kMemberHeard.name},
          .needs = {{"GRPC"}},
          .excludes = std::move(others),
          .make = [decision](MicroParts& parts) { return std::make_unique<Accept>(parts, decision); }};
}

}  // namespace

MicroKind one_accept_kind() {
  return accept_kind("ONE_ACCEPT", "the first reply of any member", one_accepts, {"ALL_ACCEPT", "MAJORITY"});
}
MicroKind all_accept_kind() {
  return accept_kind("ALL_ACCEPT", "the replies of all members that have not failed", all_accept,
                     {"ONE_ACCEPT", "MAJORITY"});
}
MicroKind majority_kind() {
  return accept_kind("MAJORITY", "the replies of more than half", majority_accepts, {"ONE_ACCEPT", "ALL_ACCEPT"});
}

}  // namespace lrpc::netrpc::composite
