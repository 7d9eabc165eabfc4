// What a thread has of its own on the call path, behind one address: several thread-local words would each cost a load
// of their place.
#pragma once

namespace lrpc::shim {

struct LinkageRecord;
class CallLimits;

/// How many threads of a process can hold leases of A-stacks at a time; further ones use the LIFOs.
inline constexpr unsigned kLeasingThreads = 16;

struct CallingThread {
  /// The thread's number among those, its own as long as it lives; kLeasingThreads: none (yet, or never where the kernel
  /// has no asymmetric fence).
  unsigned number = kLeasingThreads;
  /// Its outstanding calls, innermost first (LRPC §3.2: a stack of linkages per thread).
  LinkageRecord* linkages = nullptr;
  /// What holds for the calls that it makes; null: nothing. Set by scopes at the client and, to what its caller has left,
  /// around a procedure at the server: so deadlines pass on by themselves. Whoever sets it puts it back.
  CallLimits* limits = nullptr;
};

extern constinit thread_local CallingThread calling_thread;

}  // namespace lrpc::shim
