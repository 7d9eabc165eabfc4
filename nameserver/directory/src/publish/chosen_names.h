// Chooses which of a machine's names are published if there are too many: pure.
#pragma once

#include <cstddef>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::directory {

/// At most `most` of `names`, in their order. The users of the servers take turns, with one name per turn. So each user
/// gets an equal part, users that need more share what others do not need, and a single user gets all. Of one user, the
/// first names are chosen. The same names always give the same choice. If a user replaces names by as many others, the
/// choice among other users' names does not change. Work: sorts the names.
[[nodiscard]] std::vector<shim::ListedName> choose_names(std::vector<shim::ListedName> names, std::size_t most);

}  // namespace lrpc::directory
