// A client whose next call comes as soon as the one before has returned: its E-stack never rests.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "conformance_service.h"
#include "eventually.h"
#include "held_calls.h"
#include "raw_binding.h"

namespace testing_lrpc {
namespace {

using lrpc::Gate;
using lrpc::shim::CallWord;
using namespace std::chrono_literals;

struct Held : ConformanceService {
  void Null(CallContext&) {
    stays = true;
    while (held) std::this_thread::sleep_for(1ms);
    stays = false;
  }
  std::atomic<bool> held{true};
  std::atomic<bool> stays{false};
};

/// Rings anew on the E-stack's own thread, as it wakes the caller: no caller is quicker.
class Restless : public Watch {
 public:
  explicit Restless(int socket) : binding_(socket, Gate::sleep) {
    const auto& procedures = Conformance::kPdl.procedures;
    const auto null = std::ranges::find(procedures, "Null", &lrpc::ProcedureDescriptor::name);
    procedure_ = static_cast<std::uint16_t>(null - procedures.begin());
    while (binding_.region().astack(astack_).astack_class != null->astack_class) ++astack_;
    ring();
    begin();
    binding_.wake(astack_);
  }
  void woke(void* /*word*/, std::uint32_t bits) override {
    const bool of_caller = bits == static_cast<std::uint32_t>(lrpc::shim::Sleeper::caller);
    if (of_caller && !ended_ && binding_.returned(astack_)) ring();
  }
  void end() noexcept { ended_ = true; }

 private:
  void ring() {
    binding_.ring_only(astack_, procedure_);
    binding_.region().astack(astack_).head->word.fetch_or(CallWord::kCallerSleeps);  // so that the return wakes
  }

  RawBinding binding_;
  std::uint16_t procedure_ = 0;
  std::uint32_t astack_ = 0;
  std::atomic<bool> ended_{false};
};

/// A started call rings once. The clerk looks once, and finds the only E-stack in a procedure.
TEST(BusyEStack, leaves_a_caller_that_never_pauses_for_a_call_that_waits) {
  Held service;
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  std::optional<lrpc::Server> server(std::in_place, lrpc::ServerOptions{.max_estacks = 1});
  ASSERT_TRUE(Conformance::serve_over(*server, std::move(ends->first), service));
  Restless busy(ends->second.get());
  EXPECT_TRUE(eventually([&] { return service.stays.load(); }));
  auto client = bind_privately(*server, service, {.gate = Gate::sleep});  // ends before `busy`, which its thread uses
  ASSERT_TRUE(client);
  auto call = client->start().Null();
  EXPECT_TRUE(bind_privately(*server, service)) << "the clerk does this after its look";
  service.held = false;
  EXPECT_TRUE(eventually([&] { return call.ready(); }));
  busy.end();
  EXPECT_TRUE(call.finish());
  server.reset();  // its threads use `busy`
}

}  // namespace
}  // namespace testing_lrpc
