// The stacks that procedures run on: those of the E-stacks and of the poller are alike.
#pragma once

#include <cstddef>

#include "lrpc/detail/shim/system/thread.h"

namespace lrpc::server {

/// Of each stack, what is left to the program's procedure (and to the runtime, which needs little) beside its entry
/// stub's copies.
inline constexpr std::size_t kProcedureRoom = 64 * 1024;
/// Large, so that a procedure built without stack probes must have a frame as large to step over it into a neighbour.
inline constexpr std::size_t kStackGuard = 64 * 1024;

/// A thread that runs procedures.
[[nodiscard]] inline shim::Thread::Options procedure_thread(const char* name, std::size_t estack_size) noexcept {
  return {.name = name, .stack_size = estack_size, .guard_size = kStackGuard};
}

}  // namespace lrpc::server
