// What the processes of the storm do. Each function is the whole life of a process; it returns the exit status.
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/detail/client/import/binding.h"

namespace lrpc::storm {

struct Orders {
  std::string nameserver;
  std::uint64_t seed = 0;
  Gate gate = Gate::adaptive;  ///< For all bindings of a client.
  bool ends_itself = false;    ///< It ends itself among its calls, by exit, _exit, abort or an exception.
};

/// Exports one to three names, withdraws and exports again, until SIGTERM.
int run_server(const Orders& orders);
/// Exports the survivor's name until the storm ends. Releases what it holds while a round drains.
int run_survivor_server(const Orders& orders);
/// Some threads that import and call, until SIGTERM or the round ends.
int run_client(const Orders& orders);
/// One thread, sealed: it reaches other processes only by its calls (trap gate). Until the round ends.
int run_sealed_client(const Orders& orders);
/// As a client, but through all rounds. While a round drains, keeps its two bindings to the survivor and nothing else.
int run_survivor_client(const Orders& orders);

/// A new process: imports the survivor of its machine and calls it, and, if there is a network, the other machine's
/// survivor. Ends when both were called; complains if an import keeps failing.
int run_newcomer(const Orders& orders);

/// Blocks SIGTERM, so that only sleep_or_end() notices it. Call it before the first thread is started.
void block_sigterm() noexcept;
/// Sleeps; true if the process was asked to end.
[[nodiscard]] bool sleep_or_end(std::uint32_t microseconds) noexcept;

}  // namespace lrpc::storm
