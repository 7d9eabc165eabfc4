// Which users of this machine may reach other hosts: there they act with this host's key.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::netd {

/// Whether a client may. Any thread; does not block. Errors: not_permitted, which says what to do about it.
using MayCall = std::function<Status(const shim::ClientCredentials& client)>;

/// Allows root, this process's user, `users`, and the members of `groups`, by name or number. A member is a user whom
/// the group database lists, which is read here and not again, or whose process has the group. Errors: invalid_argument
/// (there is no such user or group), system_error (the database could not be asked).
[[nodiscard]] Result<MayCall> who_may_call(const std::vector<std::string>& users,
                                           const std::vector<std::string>& groups);

}  // namespace lrpc::netd
