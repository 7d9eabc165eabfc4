// The parts of a Null call, each timed alone: what Table V breaks a call down into. All of them run in one thread, over
// a loopback binding where they need one.
#pragma once

#include <memory>

#include "core/contender.h"

namespace lrpc::bench {

enum class CallPart {
  trap,         ///< One bare system call: into the kernel and out.
  client_stub,  ///< Steps 2 and 7 with nothing in between: an A-stack taken and put back.
  server_stub,  ///< Steps d and e: the entry stub of Null, entered through its table, and the procedure.
  linkage,      ///< Steps a and f: the next call claimed in the server's linkage record and released.
  call_word,  ///< Steps 4, b and g: rung by a store, loaded twice, returned by an exchange; the line stays where it is.
  whole,      ///< The whole Null call, both halves, without a transfer.
};

std::unique_ptr<Contender> make_call_part(CallPart part);

}  // namespace lrpc::bench
