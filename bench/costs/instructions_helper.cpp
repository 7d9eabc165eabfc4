// lrpc-bench-instructions TEST COUNT: makes COUNT calls with both halves in one thread, in one function whose
// instructions callgrind counts (--toggle-collect). `lrpc-bench instructions` runs it twice and takes the difference.
//
// The halves alternate: the client's half as in the generated stub, up to the ring; the server's half as a poller or an
// E-stack runs it; then the client's half from its first look at the word, which finds that the call has returned.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "call/call_path.h"
#include "calls/bench_loopback.h"
#include "floors/plain_procedures.h"

namespace {

using namespace lrpc::bench;

volatile bool failed = false;

/// A noinline function for each test, so that no test keeps registers from another.
template <class Call, class... With>
[[gnu::noinline]] void repeat(unsigned long count, Call /*stateless*/, With&... with) {
  for (unsigned long i = 0; i < count; ++i) {
    if (!Call()(with...)) failed = true;
    asm volatile("" : : : "memory");  // so that the compiler keeps even an empty loop
  }
}

using lrpc::server::ServedAStack;

struct ServerHalf {
  lrpc::server::PrimedContext context;
  std::span<ServedAStack> astacks;

  explicit ServerHalf(BenchLoopback& loopback) : astacks(loopback.astacks()) {}
  /// What a poller or an E-stack calls for an A-stack that it scans.
  void serve(ServedAStack& astack) { (void)lrpc::server::serve(astack, context); }
};

/// One Null call as its stub makes it (bench.client.h), with the server's half in place of the transfer.
inline lrpc::Result<void> null_in_halves(::Bench::Client& client, ServerHalf& server, ServedAStack& astack) {
  lrpc::client::BindingObject& object = lrpc::detail::StubAccess::object(client.binding());
  if (object.remote()) [[unlikely]]
    return lrpc::Errc::remote_unavailable;
  lrpc::client::Call call(object, 0);
  if (!call.taken()) [[unlikely]]
    return call.error();
  lrpc::shim::CallWord called = call.next_call(0);
  std::uint16_t status = lrpc::shim::call_status::kFailed;  // of the slow path, which this bench does not count
  if (call.limit(called) && call.ring_if_polled(called)) [[likely]] {
    server.serve(astack);
    status = call.wait(0);
  }
  if (status != 0) [[unlikely]]
    return call.failure(status, "Bench.Null");
  return {};
}

/// The same as a call that is started and finished later.
inline lrpc::Result<void> started_null(::Bench::Client& client, ServerHalf& server) {
  auto pending = client.start().Null();
  server.serve(server.astacks[lrpc::detail::StubAccess::call(pending).astack()]);
  return pending.finish();
}

}  // namespace

// The function that --toggle-collect names: unmangled, and never inlined.
extern "C" [[gnu::noinline]] void lrpc_bench_counted(std::string_view test, unsigned long count,
                                                     ::Bench::Client& client, ServerHalf& server, ServedAStack& astack);
void lrpc_bench_counted(std::string_view test, unsigned long count, ::Bench::Client& client, ServerHalf& server,
                        ServedAStack& astack) {
  const auto null = [](auto& c, auto& s, auto& a) { return null_in_halves(c, s, a).has_value(); };
  if (test == "loop") {
    repeat(count, [] { return true; });
  } else if (test == "plain") {
    repeat(count, [] {
      plain_null();
      return true;
    });
  } else if (test == "Null") {
    repeat(count, null, client, server, astack);
  } else if (test == "deadline") {
    const lrpc::CallScope scope{std::chrono::hours(1)};
    repeat(count, null, client, server, astack);
  } else if (test == "started") {
    repeat(
        count, [](auto& c, auto& s) { return started_null(c, s).has_value(); }, client, server);
  } else if (test == "inline") {
    repeat(
        count, [](auto& c) { return c.Null().has_value(); }, client);
  } else if (test == "Add") {
    repeat(
        count, [](auto& c) { return c.Add(20, 22).has_value(); }, client);
  } else {
    failed = true;
  }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: lrpc-bench-instructions loop|plain|Null|deadline|started|Add|inline COUNT\n");
    return 2;
  }
  auto loopback = make_bench_loopback();
  if (!loopback) {
    fmt::print(stderr, "lrpc-bench-instructions: {}\n", loopback.error().message());
    return 1;
  }
  // Makes the first calls here, uncounted, because some work is done only then.
  for (int i = 0; i < 100; ++i)
    if (!(*loopback)->client().Null() || !(*loopback)->client().Add(20, 22)) return 1;
  // Finds the A-stacks that this thread takes next, and sets the hints of every A-stack as if a poller scanned it and
  // an E-stack were associated.
  std::uint32_t top = 0;
  {
    lrpc::client::Call call((*loopback)->binding(), 0);
    lrpc::client::PendingCall pending((*loopback)->binding(), 0);
    if (!call.taken() || !pending.taken()) return 1;
    top = call.linkage().index;
    // The hint names a processor that does not exist, so the poller counts as one on another processor: the caller
    // trusts the hint, and exchanges, from the first call on.
    const lrpc::shim::PolledHint hint(lrpc::shim::kNoProcessor - 1, 1);
    for (ServedAStack& astack : (*loopback)->astacks()) {
      astack.head->polled.store(hint.bits());
      astack.head->attached.store(lrpc::shim::EStackHint::anywhere().bits());
    }
    for (auto* linkage : {&call.linkage(), &pending.linkage()})
      (void)linkage->policy.choose(
          {.polled = hint, .estack = lrpc::shim::EStackHint::anywhere(), .processor = 0, .now = {}}, false);
    pending.put_back();
  }
  ServerHalf server(**loopback);
  lrpc_bench_counted(argv[1], std::strtoul(argv[2], nullptr, 10), (*loopback)->client(), server, server.astacks[top]);
  return failed ? 1 : 0;
}
