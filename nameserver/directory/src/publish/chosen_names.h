// Which of a machine's names are published, where there are too many: pure.
#pragma once

#include <cstddef>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::directory {

/// At most `most` of `names`, in their order. The users of the servers take turns, one name a turn. So each user has an
/// equal part, what a user does not need goes to the others, and a user that is alone has all. Of one user, the first
/// names are chosen. The same names always give the same choice. If a user replaces names and has as many as before,
/// the choice among the others' names stays. Work: sorts the names.
[[nodiscard]] std::vector<shim::ListedName> choose_names(std::vector<shim::ListedName> names, std::size_t most);

}  // namespace lrpc::directory
