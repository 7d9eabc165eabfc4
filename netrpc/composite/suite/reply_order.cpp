// REPLY_ORDER: calls end in the order in which they have begun (§4.2: reply ordering).
#include <algorithm>
#include <vector>

#include "netrpc/composite/calls.h"
#include "netrpc/composite/suite/suite.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

namespace {

class ReplyOrder final : public MicroProtocol {
 public:
  explicit ReplyOrder(MicroParts& parts) : parts_(parts), may_end_(parts.exported(kCallMayEnd)) {
    parts_.handle(kCallBegun, [this](CallId call, const Session* session) { begun(call, session); });
    parts_.handle(kCallEnded, [this](CallId call) { ended(call); });
    parts_.exported_procedure(kMayEnd, [this](CallId call) { return may_end(call); });
  }

 private:
  struct Begun {
    CallId call;
    const Session* session;  ///< Only compared.
    bool decided = false;
  };

  void begun(CallId call, const Session* session) noexcept {
    if (parts_.calls().has(call) && !attempt([&] { begun_.push_back({call, session}); }))
      parts_.calls().end(call, Errc::limit_reached);
  }

  [[nodiscard]] bool may_end(CallId call) noexcept {
    const auto known = std::ranges::find(begun_, call, &Begun::call);
    if (known == begun_.end()) return true;
    known->decided = true;
    return std::ranges::find(begun_.begin(), known, known->session, &Begun::session) == known;
  }

  /// A failed call ends at once, and no other waits for it any more.
  void ended(CallId call) noexcept {
    const auto known = std::ranges::find(begun_, call, &Begun::call);
    if (known == begun_.end()) return;
    const Session* const session = known->session;
    const auto behind = begun_.erase(known);
    const auto next = std::ranges::find(begun_, session, &Begun::session);
    if (next != begun_.end() && next >= behind && next->decided)
      parts_.events().raise(*may_end_, Raise::asynchronous, next->call);
  }

  MicroParts parts_;
  const Raisable<CallId>* const may_end_;
  std::vector<Begun> begun_;  ///< In the order in which they began.
};

}  // namespace

MicroKind reply_order_kind() {
  return {.name = "REPLY_ORDER",
          .summary = "calls end in the order in which they have begun",
          .exports = {kCallMayEnd.name, kMayEnd.name},
          .imports = {kCallBegun.name, kCallEnded.name},
          .make = make_micro<ReplyOrder>};
}

}  // namespace lrpc::netrpc::composite
