// A thread's own state on the call path, in one thread-local object: each further thread-local variable would cost one
// more load of an address.
#pragma once

#include <cstddef>

namespace lrpc::shim {

struct LinkageRecord;
class CallLimits;

/// So many threads of a process can hold leases of A-stacks at a time; further threads use the LIFOs.
inline constexpr unsigned kLeasingThreads = 16;

/// Bytes from one thread's lease to the next.
inline constexpr std::size_t kLeaseSize = 64;

struct CallingThread {
  /// The thread's number among the leasing threads, valid as long as the thread lives. kLeasingThreads: it has none
  /// yet, or never gets one, because the kernel has no asymmetric fence.
  [[nodiscard]] unsigned number() const noexcept { return static_cast<unsigned>(lease / kLeaseSize); }
  void set_number(unsigned number) noexcept { lease = number * kLeaseSize; }

  /// The same number as the call path needs it: the offset of the thread's lease in a list's leases.
  std::size_t lease = kLeasingThreads * kLeaseSize;
  /// The thread's outstanding calls, innermost first (LRPC §3.2: a stack of linkages per thread).
  LinkageRecord* linkages = nullptr;
  /// The limits of the calls that the thread makes; null: none. Scopes set it at the client. The server sets it around
  /// a procedure to what is left of the caller's deadline, so nested calls inherit the deadline. Whoever sets it
  /// restores the former value.
  CallLimits* limits = nullptr;
};

extern constinit thread_local CallingThread calling_thread;

}  // namespace lrpc::shim
