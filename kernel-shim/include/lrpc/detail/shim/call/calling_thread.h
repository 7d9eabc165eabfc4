// What a thread has of its own on the call path, behind one address: several thread-local words would each cost a load
// of their place.
#pragma once

#include <cstddef>

namespace lrpc::shim {

struct LinkageRecord;
class CallLimits;

/// How many threads of a process can hold leases of A-stacks at a time; further ones use the LIFOs.
inline constexpr unsigned kLeasingThreads = 16;

/// From one thread's lease to the next, in bytes.
inline constexpr std::size_t kLeaseSize = 64;

struct CallingThread {
  /// The thread's number among those, its own as long as it lives; kLeasingThreads: none (yet, or never where the
  /// kernel has no asymmetric fence).
  [[nodiscard]] unsigned number() const noexcept { return static_cast<unsigned>(lease / kLeaseSize); }
  void set_number(unsigned number) noexcept { lease = number * kLeaseSize; }

  /// The same as the call path has it: where the thread's lease is among those of a list.
  std::size_t lease = kLeasingThreads * kLeaseSize;
  /// Its outstanding calls, innermost first (LRPC §3.2: a stack of linkages per thread).
  LinkageRecord* linkages = nullptr;
  /// What holds for the calls that it makes; null: nothing. Set by scopes at the client and, to what its caller has
  /// left, around a procedure at the server: so deadlines pass on by themselves. Whoever sets it puts it back.
  CallLimits* limits = nullptr;
};

extern constinit thread_local CallingThread calling_thread;

}  // namespace lrpc::shim
