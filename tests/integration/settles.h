// Waits for calls whose return nobody waits for.
#pragma once

#include "eventually.h"
#include "tasks.client.h"

namespace testing_lrpc {

/// Waits until the server has returned all one-way calls and all dropped calls.
inline bool settles(Tasks::Client& client) {
  return eventually([&] { return lrpc::detail::StubAccess::object(client.binding()).in_quarantine() == 0; });
}

}  // namespace testing_lrpc
