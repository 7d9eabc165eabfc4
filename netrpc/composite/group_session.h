// A session to a group of hosts (Host::groups()), through sessions to its members.
#pragma once

#include <span>
#include <vector>

#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc::composite {

class Framework;

/// If several members could not be asked, whether `why` is worth more than the reasons for the others: what this host
/// lacks says more than host_unreachable.
[[nodiscard]] constexpr bool tells_more(Errc why) noexcept { return why != Errc::host_unreachable; }

/// Between the protocol above and a Framework. Its members are those that the group has when it is opened.
class GroupSession final : public Session {
 public:
  GroupSession(Framework& framework, Protocol& high, const ParticipantSet& participants);

  /// The sessions to the members, opened if need be. Null: this one could not be opened; the next call of members()
  /// tries again. Valid as long as this lives.
  [[nodiscard]] std::span<const SessionRef> members() noexcept;
  /// Why a member was null when members() was called last. limit_reached without a text: this host has no memory.
  [[nodiscard]] const Error& why_not(std::size_t member) const noexcept { return why_not_[member]; }
  /// The same for a group in which all are null: what this host lacks, if that is the reason of any. Precondition: the
  /// group has members.
  [[nodiscard]] const Error& why_none() const noexcept;
  [[nodiscard]] HostAddress host(std::size_t member) const noexcept { return hosts_[member]; }

  [[nodiscard]] Errc push(Message message) noexcept override;
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override;
  /// MaximumMessage and OptimumMessage: the smallest of the members'. Authenticated: whether all are. Also answers
  /// FreedByCancel, PeerHost and Statistics; anything else is not_supported.
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  template <class Size>
  [[nodiscard]] Errc least(Size& size) noexcept;

  Framework& framework_;
  std::vector<SessionRef> members_;
  std::vector<Error> why_not_;
  std::vector<HostAddress> hosts_;
};

}  // namespace lrpc::netrpc::composite
