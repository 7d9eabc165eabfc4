// The parts of a Null call, each timed alone: the lines into which Table V divides a call. All run in one thread, over
// a loopback binding where they need one.
#pragma once

#include <memory>

#include "core/contender.h"

namespace lrpc::bench {

enum class CallPart {
  trap,         ///< One bare system call: into the kernel and back.
  client_stub,  ///< Steps 2 and 7 alone: an A-stack is taken and put back.
  server_stub,  ///< Steps d and e: Null's entry stub, called through its table, and the procedure.
  linkage,      ///< Steps a and f: the next call is claimed in the server's linkage record and released.
  /// Steps 4, b and g: rung by a store, loaded twice by the server, returned by an exchange, loaded by the client. The
  /// cache line stays in one core.
  call_word,
  whole,  ///< The whole Null call, both halves, without a transfer.
};

std::unique_ptr<Contender> make_call_part(CallPart part);

}  // namespace lrpc::bench
