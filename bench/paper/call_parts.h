// The parts of a Null call, each timed alone: the lines into which Table V divides a call. All run in one thread, over
// a loopback binding where they need one.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "calls/bench_loopback.h"
#include "core/contender.h"
#include "core/store.h"
#include "lrpc/detail/shim/call/gates.h"

namespace lrpc::bench::call_parts {

/// Keeps the compiler from moving or dropping the code before it.
inline void barrier() noexcept { asm volatile("" : : : "memory"); }

/// One bare system call: into the kernel and back.
class Trap final : public RoundTrips<Trap> {
 public:
  void round_trip() noexcept { (void)::syscall(SYS_getppid); }
};

/// The common base of the parts that need a binding. It is made in the client process, so that its server's threads
/// live there.
template <class Self>
class Bound : public RoundTrips<Self> {
 public:
  Status connect() final { return store(loopback_, make_bench_loopback()); }
  [[nodiscard]] Status health() const final {
    if (good_) return {};
    return Error{Errc::call_failed, "a call over the loopback binding failed"};
  }

 protected:
  std::unique_ptr<BenchLoopback> loopback_;
  bool good_ = true;
};

/// Steps 2 and 7 alone: an A-stack is taken and put back.
class ClientStub final : public Bound<ClientStub> {
 public:
  void round_trip() noexcept {
    const client::Call call(loopback_->binding(), 0);
    good_ &= call.taken();
    barrier();
  }
};

/// The whole Null call, both halves, without a transfer.
class WholeCall final : public Bound<WholeCall> {
 public:
  void round_trip() noexcept { good_ &= loopback_->client().Null().has_value(); }
};

/// Steps d and e: Null's entry stub, called through its table, and the procedure.
class ServerStub final : public RoundTrips<ServerStub> {
 public:
  void round_trip() noexcept {
    EntryStub stub = ::Bench::Entry_<Procedures>::kStubs_[0];
    asm volatile("" : "+r"(stub));  // as in the call path, the compiler does not know which stub it is
    status_ = stub(&procedures_, context_);
    barrier();
  }

 private:
  Procedures procedures_;
  CallContext context_;
  std::uint16_t status_ = 0;
};

/// Steps a and f: the next call is claimed in the server's linkage record and released.
class Linkage final : public RoundTrips<Linkage> {
 public:
  void round_trip() noexcept {
    const std::uint64_t generation = linkage_.next_generation();
    if (linkage_.claim(generation)) linkage_.release(generation);
  }

 private:
  shim::ServerLinkage linkage_;
};

/// Steps 4, b and g: rung by a store, loaded twice by the server, returned by an exchange, loaded by the client. The
/// cache line stays in one core.
class CallWord final : public RoundTrips<CallWord> {
 public:
  void round_trip() noexcept {
    shim::ring_exchange(head_, shim::CallWord::called(++generation_, 0, 0));
    if (!shim::load_word(head_).is(shim::Turn::called, generation_)) ++surprises_;  // the scan
    if (!shim::load_word(head_).is(shim::Turn::called, generation_)) ++surprises_;  // after the claim
    shim::return_to_caller(head_, shim::CallWord::returned(generation_, 0));
    if (!shim::load_word(head_).is(shim::Turn::returned, generation_)) ++surprises_;
  }

 private:
  shim::AStackHead head_{};
  std::uint64_t generation_ = 0;
  std::uint64_t surprises_ = 0;
};

}  // namespace lrpc::bench::call_parts
