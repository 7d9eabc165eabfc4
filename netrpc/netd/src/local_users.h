// Which users of this machine may reach other hosts: whoever may speaks there with this host's key.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::netd {

/// Immutable; may be asked in any thread.
class LocalUsers {
 public:
  /// Root and this process's user; besides, the users and the members of the groups named, by name or number: who is
  /// one by the group database, which is looked up here and not again, and whose process has the group. Errors:
  /// invalid_argument (there is no such user or group).
  static Result<LocalUsers> make(const std::vector<std::string>& users, const std::vector<std::string>& groups);

  /// not_permitted, and what to do about it. Does not block.
  [[nodiscard]] Status may_call(const shim::ClientCredentials& client) const;

 private:
  std::set<uid_t> users_;
  std::set<gid_t> groups_;
};

}  // namespace lrpc::netd
