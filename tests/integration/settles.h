// When calls that nobody waits for have been executed.
#pragma once

#include "eventually.h"
#include "tasks.client.h"

namespace testing_lrpc {

/// Waits until the server has let go of all one-way calls, and of those that were dropped.
inline bool settles(Tasks::Client& client) {
  return eventually([&] { return lrpc::detail::StubAccess::object(client.binding()).in_quarantine() == 0; });
}

}  // namespace testing_lrpc
