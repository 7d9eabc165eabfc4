// Explores the call word with its gates (kernel-shim) and the server's half of a call (libserver), the product's own
// sources, under the C++ memory model. The client's steps are in the order of transfer.cpp, the steps of E-stack and
// poller in that of estack_pool.cpp and poller.cpp. Those files decide much more than what is checked here.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include "standard.h"
// From here on, headers and sources that use the explored atomics. The processor's own fence instruction is replaced,
// too, by one that the explorer knows.
#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::shim {
inline void explored_full_fence(std::source_location where = std::source_location::current()) {
  explore::fence(std::memory_order_seq_cst, where);
}
}  // namespace lrpc::shim
#define full_fence explored_full_fence

#include "kernel-shim/src/call/gates.cpp"  // NOLINT(bugprone-suspicious-include): with explored atomics
#include "libserver/src/call/call_path.h"
#include "lrpc/detail/shim/system/asymmetric_fence.h"

#include "programs.h"

// Functions that no call here reaches.
namespace lrpc::server {
void tell_exception(const ServedInterface& /*interface*/, std::uint16_t /*procedure*/) noexcept { std::abort(); }
void Scratch::reset() noexcept { std::abort(); }
void Scratch::Free::operator()(std::byte* /*memory*/) const noexcept { std::abort(); }
}  // namespace lrpc::server
namespace lrpc::shim {
double nanoseconds_per_tick() noexcept { return 1; }
std::uint64_t ticks_per_microsecond() noexcept { return 1000; }
void Deadline::note_clock() noexcept {}
}  // namespace lrpc::shim

namespace testing_lrpc {
namespace {

using lrpc::server::Polled;
using lrpc::server::Scanner;
using lrpc::server::serve;
using lrpc::server::ServedAStack;
using lrpc::shim::AStackHead;
using lrpc::shim::CallWord;
using lrpc::shim::LinkageRecord;
using lrpc::shim::PolledHint;
using lrpc::shim::Sleeper;
using lrpc::shim::Turn;

std::uint16_t entry(void* world, lrpc::CallContext& context);
constexpr lrpc::server::EntryPoint kEntry{.stub = &entry, .may_block = false};

/// Refused calls ask it whether the binding is revoked: all zero means that it is not. Nothing else of it is read.
alignas(lrpc::server::ServedBinding) std::byte no_binding[sizeof(lrpc::server::ServedBinding)];

/// In each run at the same addresses.
struct World {
  World() {
    linkage.astack.head = served.head = &head;
    served.entries = &kEntry;
    served.entry_count = 1;
    served.impl = this;
    served.binding = reinterpret_cast<lrpc::server::ServedBinding*>(no_binding);
  }

  AStackHead head{};
  LinkageRecord linkage;
  ServedAStack served;
  explore::Plain argument;
  explore::Plain result;
  std::uint64_t executed = 0;
  std::atomic<bool> leave{false};
  std::atomic<bool> over{false};     ///< Clients make no more calls.
  std::atomic<bool> revoked{false};  ///< The client's flag.
  std::atomic<bool> served_revoked{false};
  bool given_back = false;
  std::uint64_t bell = 0;  ///< Messages in the socket. The kernel orders sender and receiver.
};
alignas(World) std::byte place[sizeof(World)];
World& world() { return *std::launder(reinterpret_cast<World*>(place)); }

std::uint16_t entry(void* world, lrpc::CallContext& /*context*/) {
  auto& here = *static_cast<World*>(world);
  ++here.executed;
  explore::expect(!here.given_back, "a procedure is executed although its binding was given back");
  const std::uint64_t argument = here.argument.read();
  explore::pass();
  here.result.write(argument + 1);
  return 0;
}

// ---- The client ----

void ring_bell() {
  explore::pass();
  explore::kernel_orders();
  ++world().bell;
}

/// T4
void wake_estack() {
  world().linkage.estack_may_sleep = false;
  lrpc::shim::futex_wake(world().head.word, Sleeper::estack);
  if (world().head.attached.load(std::memory_order_seq_cst) == 0) ring_bell();
}

/// Steps 3 to 6. False: not finished; transfer.cpp continues until the call has returned.
bool call(std::uint64_t argument, bool abandons = false) {
  AStackHead& head = world().head;
  LinkageRecord& linkage = world().linkage;
  world().argument.write(argument);
  const CallWord called = linkage.next_call(0, lrpc::shim::kNoProcessor);
  CallWord word;
  bool rung = false;
  bool parked = false;
  if (head.polled.load(std::memory_order_relaxed) != 0) {
    lrpc::shim::ring_exchange(head, called);
    linkage.estack_may_sleep = true;
    if (lrpc::shim::poll_return(linkage, {.wait = 1}, word)) {
      explore::expect(world().result.read() == argument + 1, "the result is another call's");
      return true;
    }
    rung = true;
  }
  if (!rung) parked = lrpc::shim::ring_handoff(head, called);
  if (parked || linkage.estack_may_sleep || head.attached.load(std::memory_order_seq_cst) == 0) wake_estack();
  for (;;) {
    word = lrpc::shim::load_word(head);
    if (word.is(Turn::returned, linkage.generation())) {
      explore::expect(world().result.read() == argument + 1, "the result is another call's");
      return true;
    }
    if (world().revoked.load(std::memory_order_seq_cst) || word.revoked()) return false;
    explore::expect(word.is(Turn::called, linkage.generation()), "the word says what nobody has said");
    if (abandons) {
      if (lrpc::shim::abandon(head, linkage.generation())) return false;
      continue;
    }
    (void)lrpc::shim::sleep_for_return(head, linkage.generation(), world().revoked, std::chrono::seconds(1));
  }
}

/// A started call, as PendingCall::ring() makes it; nobody waits for the return.
void start(std::uint64_t argument) {
  AStackHead& head = world().head;
  LinkageRecord& linkage = world().linkage;
  world().argument.write(argument);
  const CallWord called = linkage.next_call(0, lrpc::shim::kNoProcessor);
  bool wakes = true;
  if (head.polled.load(std::memory_order_relaxed) != 0) {
    linkage.estack_may_sleep = true;
    const auto attached = [&] { return head.attached.load(std::memory_order_relaxed) != 0; };
    wakes =
        !(lrpc::shim::ring_for_poller(head, called) && attached()) && !(lrpc::shim::still_polled(head) && attached());
  } else {
    const bool parked = lrpc::shim::ring_handoff(head, called);
    wakes = parked || linkage.estack_may_sleep || head.attached.load(std::memory_order_seq_cst) == 0;
  }
  if (wakes) wake_estack();
}

void end_of_calls() {
  world().over.store(true, std::memory_order_seq_cst);
  world().leave.store(true, std::memory_order_seq_cst);  // as EStackPool::let_go()
  lrpc::shim::unpark_estack(world().head);
}

void two_calls() {
  call(10);
  call(20);
  explore::expect(world().executed == 2, "a call is executed twice, or not at all");
  end_of_calls();
}

void start_one() {
  start(10);
  explore::wait_until([] { return world().executed == 1; });
  end_of_calls();
}

/// Abandons the first call; the next one waits until the quarantine has ended (T16).
void abandon_one() {
  const bool returned = call(10, true);
  if (!returned) {
    while (!lrpc::shim::load_word(world().head).is(Turn::returned, world().linkage.generation()))
      explore::wait_for_others();
  }
  call(20);
  end_of_calls();
}

// ---- The server ----

void be_estack(bool leaves_when_idle = false) {
  lrpc::server::PrimedContext context;
  ServedAStack& astack = world().served;
  astack.estack.store(reinterpret_cast<lrpc::server::EStack*>(&context));
  world().head.attached.store(1, std::memory_order_seq_cst);
  while (!world().leave.load(std::memory_order_relaxed)) {
    if (serve(astack, context) != lrpc::server::Served::nothing) continue;
    if (leaves_when_idle) break;
    lrpc::shim::park_estack(world().head, astack.linkage, world().leave, world().served_revoked,
                            std::chrono::seconds(1));
  }
  // T14
  world().head.attached.store(0, std::memory_order_seq_cst);
  astack.estack.store(nullptr, std::memory_order_seq_cst);
  (void)lrpc::shim::fence_before_last_look(astack.polled.load(std::memory_order_relaxed) != Polled::no);
  (void)serve(astack, context);
}
void be_leaving_estack() { be_estack(true); }

/// Associates an E-stack when the bell rings, if there is none.
void be_clerk() {
  while (!world().over.load(std::memory_order_seq_cst)) {
    explore::wait_until([] {
      bool over = false;
      std::memcpy(&over, &world().over, sizeof over);
      return over || world().bell != 0;
    });
    explore::kernel_orders();
    if (std::exchange(world().bell, 0) == 0) continue;
    if (world().served.estack.load() == nullptr) be_estack();
  }
}

/// A stint of Poller's, with its end in the order of demote(): the kernel fences for the callers (`promised`), or it
/// refuses, and the hint tells the callers so.
void poll_for(PolledHint hint, bool promised) {
  lrpc::server::PrimedContext context;
  ServedAStack& astack = world().served;
  world().head.polled.store(hint.bits(), std::memory_order_release);
  for (int scans = 0; scans < 2; ++scans) {
    (void)serve<Scanner::poller>(astack, context);
    explore::pass();
  }
  lrpc::shim::take_hint_back(world().head);
  (void)lrpc::shim::fence_before_last_look(promised);
  (void)serve<Scanner::poller>(astack, context);
}
/// Only the end of a stint: what callers do meanwhile is found with fewer departures.
void stop_polling_without_fence() {
  lrpc::server::PrimedContext context;
  lrpc::shim::take_hint_back(world().head);
  (void)lrpc::shim::fence_before_last_look(false);
  (void)serve<Scanner::poller>(world().served, context);
}
void be_poller() { poll_for(PolledHint(1, 1), true); }
void be_poller_without_fence() { poll_for(PolledHint(1, 1).without_fence(), false); }

/// T18, as ServedBinding::revoke().
void revoke_server() {
  world().served_revoked.store(true, std::memory_order_seq_cst);
  lrpc::shim::revoke_word(world().head, Sleeper::estack);
}
/// Takes the procedures away, as ServedBinding::revoke() does. If no thread executes one then, the binding is given
/// back.
void take_procedures_away() {
  world().served.entry_count.store(0, std::memory_order_release);
  world().given_back = lrpc::server::none_executes({&world().served, 1});
}
void serve_what_is_rung() {
  lrpc::server::PrimedContext context;
  (void)serve(world().served, context);
}
/// An E-stack that stays until the binding is revoked.
void be_revoked_estack() {
  lrpc::server::PrimedContext context;
  while (!world().served_revoked.load(std::memory_order_relaxed)) {
    if (serve(world().served, context) != lrpc::server::Served::nothing) continue;
    lrpc::shim::park_estack(world().head, world().served.linkage, world().leave, world().served_revoked,
                            std::chrono::seconds(1));
  }
}

/// T17, as the client's watcher.
void revoke_client() {
  world().revoked.store(true, std::memory_order_seq_cst);
  lrpc::shim::revoke_word(world().head, Sleeper::caller);
}

/// `hint`, `polled`: what callers and E-stacks see at first of a poller, which may be no thread of the program.
explore::Program program(std::vector<std::function<void()>> threads, PolledHint hint = {}, Polled polled = Polled::no) {
  return {.set_up =
              [hint, polled] {
                new (place) World;
                world().head.polled.store(hint.bits());
                world().served.polled.store(polled);
              },
          .threads = std::move(threads)};
}

/// A call is rung from the beginning.
explore::Program rung_program(std::vector<std::function<void()>> threads) {
  return {.set_up =
              [] {
                new (place) World;
                lrpc::shim::ring_exchange(world().head, world().linkage.next_call(0, lrpc::shim::kNoProcessor));
              },
          .threads = std::move(threads)};
}

const std::vector<NamedProgram>& programs() {
  static const std::vector<NamedProgram> all{
      {"a_caller_and_an_estack", program({two_calls, [] { be_estack(); }})},
      {"a_caller_a_poller_and_an_estack", program({two_calls, be_poller, [] { be_estack(); }})},
      {"an_estack_that_leaves", program({two_calls, be_leaving_estack, be_clerk})},
      {"a_call_that_is_given_up", program({abandon_one, [] { be_estack(); }})},
      {"a_started_call_a_poller_and_an_estack", program({start_one, be_poller, [] { be_estack(); }})},
      {"a_started_call_and_a_poller_that_cannot_fence",
       program({start_one, be_poller_without_fence, [] { be_estack(); }})},
      {"a_started_call_and_a_poller_that_stops_and_cannot_fence",
       program({[] { be_estack(); }, start_one, stop_polling_without_fence}, PolledHint(1, 1).without_fence())},
      {"a_started_call_and_an_estack_that_leaves", program({start_one, be_leaving_estack, be_clerk})},
      {"a_started_call_and_an_estack_that_leaves_it_to_a_poller_that_is_held_up",
       program({be_leaving_estack, start_one, be_clerk}, PolledHint(1, 1), Polled::yes)},
      // The kernel would refuse the E-stack the poller's fence: a plain one takes its place.
      {"a_started_call_and_an_estack_that_leaves_it_to_a_poller_that_is_held_up_and_cannot_fence",
       program({be_leaving_estack, start_one, be_clerk}, PolledHint(1, 1).without_fence())},
      {"a_server_that_is_gone_and_said_to_poll", program({[] { call(10); }, revoke_client}, PolledHint(1, 1))},
      {"a_client_that_is_gone", program({[] { start(10); }, be_revoked_estack, revoke_server})},
      {"an_estack_and_its_revocation", program({be_revoked_estack, revoke_server})},
      {"a_call_and_a_binding_that_is_given_back", rung_program({serve_what_is_rung, take_procedures_away})},
      {"a_server_that_is_gone", program({[] { call(10); }, revoke_client})},
  };
  return all;
}

/// These include orders in functions of this file that stand for the product's.
const std::set<std::string> kNeeded{
    // T1, T2: the arguments go with the ring.
    "ring_exchange: head.word.store(called.bits(), std::memory_order_release); [store release]",
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one line of the code, too long for one here
    "ring_handoff: return CallWord(head.word.exchange(called.bits(), std::memory_order_seq_cst)).estack_parked(); "
    "[update seq_cst]",
    "load_word: return CallWord(head.word.load(std::memory_order_acquire)); [load acquire]",
    // T9: the results go with the return.
    "return_to_caller: const CallWord old(head.word.exchange(returned.bits(), std::memory_order_acq_rel)); "
    "[update acq_rel]",
    // T2 and T14: either the caller sees that no E-stack is attached, or the leaving E-stack sees the call.
    "call: if (parked || linkage.estack_may_sleep || head.attached.load(std::memory_order_seq_cst) == 0) "
    "wake_estack(); [load seq_cst]",
    // A started call, and the poller that ends its stint or the E-stack that leaves. T14 makes one of these fences.
    "heavy_shared_fence",
    "still_polled: full_fence(); [fence seq_cst]",
    "fence_before_last_look: full_fence(); [fence seq_cst]",
    // T11, T14, T18: a parking E-stack sees the flag, or does not sleep.
    "park_estack: if (!head.word.compare_exchange_strong(seen, parked.bits(), std::memory_order_seq_cst)) return; "
    "[update seq_cst]",
    "unpark_estack: head.word.fetch_and(~CallWord::kEStackParked, std::memory_order_seq_cst); [update seq_cst]",
    "revoke_word: if (who == Sleeper::estack) head.word.fetch_and(~CallWord::kEStackParked, "
    "std::memory_order_seq_cst); [update seq_cst]",
    // A binding is given back only if no thread executes a procedure of it, now or later. (The claim's own order is
    // needed, too. But here a sequentially consistent load follows the claim, and orders what is before it, as on x86.)
    "refused: return procedure >= astack.entry_count.load(std::memory_order_seq_cst); [load seq_cst]",
    "none_executes: std::atomic_thread_fence(std::memory_order_seq_cst); [fence seq_cst]",
    // T17
    "revoke_client: world().revoked.store(true, std::memory_order_seq_cst); [store seq_cst]",
};

TEST(Words, need_these_orders_and_no_others) { expect_to_be_needed(programs(), kNeeded); }

INSTANTIATE_TEST_SUITE_P(words, Explored, testing::ValuesIn(programs()), name_of_program);

}  // namespace
}  // namespace testing_lrpc
