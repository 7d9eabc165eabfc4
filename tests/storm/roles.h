// What the processes of the storm do. Each function is the whole life of a process; it returns the exit status.
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/detail/client/import/binding.h"

namespace lrpc::storm {

struct Orders {
  std::string nameserver;
  std::uint64_t seed = 0;
  Gate gate = Gate::adaptive;  ///< A client's, for all its bindings.
  bool ends_itself = false;    ///< Somewhere among its calls, by exit, _exit, abort or an exception.
};

/// Exports one to three names, withdraws and exports again, until SIGTERM.
int run_server(const Orders& orders);
/// Exports the survivor's name for good; lets go of what it holds while the storm drains. Ends with the storm.
int run_survivor_server(const Orders& orders);
/// Some threads that import and call, until SIGTERM or the round ends.
int run_client(const Orders& orders);
/// One thread, sealed, whose only way out is the call. Until the round ends.
int run_sealed_client(const Orders& orders);
/// As a client, but through all rounds; keeps one binding to the survivor and nothing else while the storm drains.
int run_survivor_client(const Orders& orders);

/// A process that nobody knows yet imports the survivor of its machine and calls it, and, where there is a network, the
/// other machine's. Until it has been let in, which must be soon.
int run_newcomer(const Orders& orders);

/// SIGTERM is noticed by sleep_or_end() alone. Before the first thread.
void block_sigterm() noexcept;
/// Sleeps; true if the process was asked to end.
[[nodiscard]] bool sleep_or_end(std::uint32_t microseconds) noexcept;

}  // namespace lrpc::storm
