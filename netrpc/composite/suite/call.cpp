// CALL: requests and their replies (what GRPC does for one server, §4.2).
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

enum class CallType : std::uint8_t { none, request, reply };

class Caller final : public MicroProtocol {
 public:
  explicit Caller(MicroParts& parts)
      : parts_(parts),
        type_(parts.attribute<CallType>("type", Visibility::of_all, InHeader::yes)),
        call_(parts.attribute<CallId>("call", Visibility::of_owner, InHeader::yes)) {
    parts_.handle(
        kMessageInsertedIntoBag,
        [this](const ItemRef& item) { item->direction == Direction::down ? goes(*item) : comes(item); },
        [](const ItemRef& item) { return item->has_entered(); });
    parts_.handle(kSuspectHostDead, [this](const Peer& peer) {
      const auto to_it = [&](const Session& session) { return Peer::of(parts_.host(), session) == peer; };
      parts_.end_calls(to_it, Errc::call_failed);
    });
  }

 private:
  void goes(Item& item) noexcept {
    type_.set(item, item.call() != 0 ? CallType::request : CallType::reply);
    call_.set(item, item.call() != 0 ? item.call() : call_(*item.answers()));
  }
  /// What another micro-protocol has made has no type, and is not ours.
  void comes(const ItemRef& item) noexcept {
    if (type_(*item) == CallType::request) return parts_.mark_request(item);
    if (type_(*item) == CallType::reply && !parts_.mark_reply(item, call_(*item))) parts_.bag().erase(item);
  }

  MicroParts parts_;
  Attribute<CallType> type_;
  Attribute<CallId> call_;
};

constexpr EventName<CallId> kBound{"Bound"};

/// No call takes longer than this, whatever its caller says (§4.2).
class Bounded final : public MicroProtocol {
 public:
  explicit Bounded(MicroParts& parts)
      : parts_(parts), limit_(parts.options.duration("limit", std::chrono::seconds(10))) {
    const auto* const bound = parts_.own(kBound, [this](CallId call) { parts_.end_call(call, Errc::call_aborted); });
    parts_.handle(
        kMessageInsertedIntoBag,
        [this, bound](const ItemRef& item) {
          if (parts_.events().set_timer(*bound, limit_, Repeat::once, item->call()) == 0)
            parts_.bag().erase(item, Errc::limit_reached);
        },
        [](const ItemRef& item) { return item->direction == Direction::down && item->call() != 0; });
  }

 private:
  MicroParts parts_;
  const Duration limit_;
};

}  // namespace

MicroKind call_kind() {
  MicroKind kind;
  kind.name = "CALL";
  kind.summary = "requests and their replies";
  kind.imports = {kMessageInsertedIntoBag.name};
  kind.may_import = {kSuspectHostDead.name};
  kind.calls = true;
  kind.make = make_micro<Caller>;
  return kind;
}

MicroKind bounded_kind() {
  MicroKind kind;
  kind.name = "BOUNDED";
  kind.summary = "ends calls that take long";
  kind.imports = {kMessageInsertedIntoBag.name};
  kind.needs = {{"CALL"}};
  kind.options = {{"limit", OptionType::duration, "of each call; 10s"}};
  kind.make = make_micro<Bounded>;
  return kind;
}

}  // namespace lrpc::netrpc::composite
