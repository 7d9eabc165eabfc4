// A session to a group of hosts (Host::groups()), through sessions to its members.
#pragma once

#include <span>
#include <vector>

#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc::composite {

class Framework;

/// Of the protocol above and a Framework. Its members are those that the group has when it is opened.
class GroupSession final : public Session {
 public:
  GroupSession(Framework& framework, Protocol& high, const ParticipantSet& participants);

  /// Opens sessions to the members that have none: those that were not to be reached are tried again with each call.
  /// Null where there is none. Valid as long as this lives.
  [[nodiscard]] std::span<const SessionRef> members() noexcept;
  [[nodiscard]] HostAddress host(std::size_t member) const noexcept { return hosts_[member]; }

  [[nodiscard]] Errc push(Message message) noexcept override;
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override;
  /// What all members can take, and whether all are authenticated. Of other requests it knows nothing.
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  Framework& framework_;
  std::vector<SessionRef> members_;
  std::vector<HostAddress> hosts_;
};

}  // namespace lrpc::netrpc::composite
