// What becomes of GRPC's calls: who has answered, who has failed, and with what a call ends (§4.2).
#pragma once

#include <functional>
#include <span>

#include "netrpc/composite/suite/group_calls.h"

namespace lrpc::netrpc::composite {

/// The part of GRPC that no message shows. It raises Call_Begun and Member_Heard, and handles what others say of calls
/// and of their members.
class Collation {
 public:
  explicit Collation(MicroParts& parts);

  /// A call through `session`, to those to whom `members` lead. `group` null: to one server. False: it has ended
  /// already, or there is no memory.
  [[nodiscard]] bool begin(CallId call, const Session* session, const GroupSession* group,
                           std::span<const SessionRef> members) noexcept;
  /// The request to the member at `place` could not be sent.
  void not_asked(CallId call, std::size_t place, Errc why) noexcept;
  /// All others have been asked.
  void asked(CallId call) noexcept;
  /// Whether this reply tells something new of the call: then heard() is to follow.
  [[nodiscard]] bool takes(CallId call, const ItemRef& reply) noexcept;
  /// The same of one that is known not to answer: the member to whom `session` leads.
  [[nodiscard]] bool fails(CallId call, const Session* session, Errc why) noexcept;
  /// Tells who decides when enough have answered.
  void heard(CallId call) noexcept;

 private:
  void leave_out_failed(GroupCall& call) const noexcept;
  void silent(CallId call, const Session* session) noexcept;
  void suspected(const Peer& peer) noexcept;
  void decided(CallId call, Errc outcome) noexcept;
  void conclude(CallId call) noexcept;
  void ended(CallId call) noexcept;

  MicroParts parts_;
  const Raisable<CallId, const Session*>* const begun_;
  const Raisable<CallId, Tally>* const heard_;
  const std::function<bool(const Peer&)>* has_failed_ = nullptr;
  const std::function<bool(CallId)>* may_end_ = nullptr;
  GroupCalls calls_;
};

}  // namespace lrpc::netrpc::composite
