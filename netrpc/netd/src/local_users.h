// Which users of this machine may reach other hosts: there they act with this host's key.
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
  /// Allows root, this process's user, `users`, and the members of `groups`, by name or number. A member is a user whom
  /// the group database lists, which is read here and not again, or whose process has the group. Errors:
  /// invalid_argument (there is no such user or group), system_error (the database could not be asked).
  static Result<LocalUsers> make(const std::vector<std::string>& users, const std::vector<std::string>& groups);

  /// Errors: not_permitted, which says what to do about it. Does not block.
  [[nodiscard]] Status may_call(const shim::ClientCredentials& client) const;

 private:
  std::set<uid_t> users_;
  std::set<gid_t> groups_;
};

}  // namespace lrpc::netd
