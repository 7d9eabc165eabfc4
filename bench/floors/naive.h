// Calls without lrpc: hand-made round trips over a kernel object, without stubs, checks or linkage.
#pragma once

#include <memory>

#include "core/contender.h"
#include "core/placement.h"

namespace lrpc::bench {

/// How many bytes each direction carries.
struct NaiveMessage {
  std::size_t request = 1;
  std::size_t reply = 1;
};

/// Two futex words in shared memory: each side wakes the other and sleeps. Carries no bytes.
Result<std::unique_ptr<Contender>> make_naive_futex(const Seats& seats);
/// Two pipes.
Result<std::unique_ptr<Contender>> make_naive_pipe(const Seats& seats, NaiveMessage message);
/// An AF_UNIX SOCK_SEQPACKET pair.
Result<std::unique_ptr<Contender>> make_naive_seqpacket(const Seats& seats, NaiveMessage message);

/// The null row: a plain call of a procedure in another translation unit, in the caller's own domain.
enum class PlainProcedure { null, add, big_in, big_in_out };
std::unique_ptr<Contender> make_plain_call(PlainProcedure procedure);

}  // namespace lrpc::bench
