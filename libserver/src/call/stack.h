// The stacks that procedures run on: alike for E-stacks, pollers and trap listeners.
#pragma once

#include <cstddef>

#include "lrpc/detail/shim/system/thread.h"

namespace lrpc::server {

/// In bytes. The least that remains of each stack for the program's procedure (and for the runtime, which needs little)
/// beside its entry stub's copies.
inline constexpr std::size_t kProcedureRoom = 64 * 1024;
/// In bytes. A procedure built without stack probes can step over it into a neighbour only with a frame as large.
inline constexpr std::size_t kStackGuard = 64 * 1024;

/// The options of a thread that runs procedures.
[[nodiscard]] inline shim::Thread::Options procedure_thread(const char* name, std::size_t estack_size) noexcept {
  return {.name = name, .stack_size = estack_size, .guard_size = kStackGuard};
}

}  // namespace lrpc::server
