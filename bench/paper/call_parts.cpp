#include "call_parts.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "calls/bench_loopback.h"
#include "core/store.h"
#include "lrpc/detail/shim/call/gates.h"

namespace lrpc::bench {
namespace {

/// Keeps the compiler from moving or dropping the code before it.
void barrier() noexcept { asm volatile("" : : : "memory"); }

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

class ClientStub final : public Bound<ClientStub> {
 public:
  void round_trip() noexcept {
    const client::Call call(loopback_->binding(), 0);
    good_ &= call.taken();
    barrier();
  }
};

class WholeCall final : public Bound<WholeCall> {
 public:
  void round_trip() noexcept { good_ &= loopback_->client().Null().has_value(); }
};

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

class Linkage final : public RoundTrips<Linkage> {
 public:
  void round_trip() noexcept {
    const std::uint64_t generation = linkage_.next_generation();
    if (linkage_.claim(generation)) linkage_.release(generation);
  }

 private:
  shim::ServerLinkage linkage_;
};

class CallWordRoundTrip final : public RoundTrips<CallWordRoundTrip> {
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

}  // namespace

std::unique_ptr<Contender> make_call_part(CallPart part) {
  switch (part) {
    case CallPart::trap: return std::make_unique<Trap>();
    case CallPart::client_stub: return std::make_unique<ClientStub>();
    case CallPart::server_stub: return std::make_unique<ServerStub>();
    case CallPart::linkage: return std::make_unique<Linkage>();
    case CallPart::call_word: return std::make_unique<CallWordRoundTrip>();
    case CallPart::whole: return std::make_unique<WholeCall>();
  }
  return nullptr;
}

}  // namespace lrpc::bench
