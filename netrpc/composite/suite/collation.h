// What becomes of GRPC's calls: who has answered, who has failed, and with what a call ends (§4.2).
#pragma once

#include <functional>
#include <span>

#include "netrpc/composite/suite/group_calls.h"

namespace lrpc::netrpc::composite {

/// The part of GRPC that knows its calls: who has been asked, who has answered or failed, and when a call ends. It
/// raises Call_Begun and Member_Heard, and handles the other micro-protocols' events about calls and their members.
class Collation {
 public:
  explicit Collation(MicroParts& parts);

  /// Begins a call through `session` to the hosts at the other ends of `members`. `group` null: to one server. False:
  /// the call has ended already, or there is no memory.
  [[nodiscard]] bool begin(CallId call, const Session* session, const GroupSession* group,
                           std::span<const SessionRef> members) noexcept;
  /// The request to the member at `place` could not be sent.
  void not_asked(CallId call, std::size_t place, Errc why) noexcept;
  /// All requests of the call have been sent, except those of not_asked().
  void asked(CallId call) noexcept;
  /// Records a reply. True: it is new, call heard() next.
  [[nodiscard]] bool takes(CallId call, const ItemRef& reply) noexcept;
  /// Records that the member at the other end of `session` will not answer. True: that is new, call heard() next.
  [[nodiscard]] bool fails(CallId call, const Session* session, Errc why) noexcept;
  /// Raises Member_Heard, so that ONE_ACCEPT, ALL_ACCEPT or MAJORITY can decide.
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
