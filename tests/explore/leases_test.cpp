// Explores the list of A-stacks with its leases and spares (libclient), the product's own source, under the C++ memory
// model.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <new>
#include <vector>

#include "standard.h"
// From here on, headers and sources that use the explored atomics.
#include "kernel.h"
#include "libclient/src/binding/astack_list.cpp"  // NOLINT(bugprone-suspicious-include): with explored atomics
#include "lrpc/detail/client/binding/astack_list.h"
#include "programs.h"

namespace testing_lrpc {
namespace {

using lrpc::client::AStackList;
using lrpc::shim::LinkageRecord;

constexpr std::size_t kMostRecords = 3;

/// In each run at the same addresses.
struct World {
  std::array<LinkageRecord, kMostRecords> records;
  std::array<explore::Plain, kMostRecords> held;  ///< Used by whoever has taken the A-stack.
  AStackList list;
  std::size_t count = 0;
  std::atomic<bool> revoked{false};
  bool ready = false;  ///< For keep_one_of_two().
};
alignas(World) std::byte place[sizeof(World)];
World& world() { return *std::launder(reinterpret_cast<World*>(place)); }

void make_world(std::size_t count) {
  lrpc::shim::calling_thread = {};
  lrpc::client::forget_other_threads_numbers();
  new (place) World;
  world().count = count;
  for (std::size_t i = 0; i < kMostRecords; ++i) world().records[i].index = static_cast<std::uint32_t>(i);
  world().list.fill(world().records, 0, static_cast<std::uint32_t>(count));
  if (membarrier_is_refused) world().list.close();  // as the first refusal does
}

/// What a thread does between taking and putting back; other threads run meanwhile.
void use(const LinkageRecord& record) {
  explore::Plain& held = world().held[record.index];
  held.write(held.read() + 1);
  explore::pass();
  held.write(held.read() + 1);
}

/// As BindingObject::take_slow(), without growth and quarantine. Null: revoked.
LinkageRecord* take_slow() {
  for (;;) {
    const std::uint32_t seen = world().list.wakes();
    if (world().revoked.load(std::memory_order_seq_cst)) return nullptr;
    bool moving = false;
    if (LinkageRecord* const record = world().list.take_any(moving)) return record;
    if (moving) {
      explore::wait_for_others();
      continue;
    }
    world().list.wait(seen, std::chrono::seconds(1), {});
  }
}

/// As take_slow() if a thread may starve: this one, or another one that goes first. Nothing is revoked.
LinkageRecord* take_in_turn(bool starves) {
  for (;;) {
    const std::uint32_t seen = world().list.wakes();
    const bool behind = !starves && world().list.anybody_starves();
    bool moving = false;
    LinkageRecord* const record = behind ? world().list.take_own() : world().list.take_any(moving);
    if (record != nullptr) return record;
    if (moving) {
      explore::wait_for_others();
      continue;
    }
    world().list.wait(seen, std::chrono::seconds(1), {}, behind);
  }
}
void starving_call() {
  world().list.starve();
  LinkageRecord* const record = take_in_turn(true);
  world().list.end_starving();
  use(*record);
  world().list.put(nullptr, *record);
}
void call_in_turn() {
  AStackList::Lease* lease = &world().list.own_lease();
  LinkageRecord* record = AStackList::take_leased(*lease);
  if (record == nullptr) {
    record = take_in_turn(false);
    lease = nullptr;
  }
  use(*record);
  world().list.put(lease, *record);
}
void started_call_in_turn() {
  LinkageRecord* record = world().list.take_spare();
  if (record == nullptr) {
    record = take_in_turn(false);
    world().list.give_up(*record);
  }
  use(*record);
  world().list.put_spare(*record);
}

/// A synchronous call, as lrpc::client::Call makes it.
void call() {
  AStackList::Lease* lease = &world().list.own_lease();
  LinkageRecord* record = AStackList::take_leased(*lease);
  if (record == nullptr) {
    record = take_slow();
    lease = nullptr;
    if (record == nullptr) return;
  }
  use(*record);
  world().list.put(lease, *record);
}
/// A call whose lease is wanted by another thread.
void slow_call() {
  LinkageRecord* const record = take_slow();
  if (record == nullptr) return;
  use(*record);
  world().list.put(nullptr, *record);
}

/// A started call, as lrpc::client::PendingCall makes it. Null: revoked.
LinkageRecord* start() {
  LinkageRecord* record = world().list.take_spare();
  if (record == nullptr) {
    record = take_slow();
    if (record == nullptr) return nullptr;
    world().list.give_up(*record);
  }
  use(*record);
  return record;
}
void started_call() {
  if (LinkageRecord* const record = start()) world().list.put_spare(*record);
}
/// The second call is still under way at the end.
void call_and_start() {
  started_call();
  if (start() != nullptr) --world().count;
}

/// Has two spares, then takes one of them and keeps it.
void keep_one_of_two() {
  LinkageRecord* const one = start();
  LinkageRecord* const other = start();
  world().list.put_spare(*one);
  world().list.put_spare(*other);
  explore::kernel_orders();
  world().ready = true;
  if (start() != nullptr) --world().count;
}
/// A call with AStackSupply::fail. One of the two A-stacks is idle all the time.
void call_without_waiting() {
  if (!world().ready) return;
  explore::kernel_orders();
  for (bool moving = true; moving;) {
    if (LinkageRecord* const record = world().list.take_any(moving)) {
      use(*record);
      world().list.put_shared(*record);
      return;
    }
    if (moving) explore::wait_for_others();
  }
  explore::expect(false, "a call is refused while an A-stack is idle");
}

/// Trims as the watcher does.
void trim() {
  std::vector<LinkageRecord*> idle;
  idle.reserve(kMostRecords);
  world().list.take_idle(idle);
  for (const LinkageRecord* record : idle) use(*record);
  world().list.put_idle(idle);
}

/// As BindingObject::revoke().
void revoke() {
  world().revoked.store(true, std::memory_order_seq_cst);
  world().list.close();
  world().list.wake_waiters();
}

explore::Program program(std::size_t astacks, std::vector<std::function<void()>> threads, bool refused = false) {
  static const bool local = [] {
    explore::add_thread_local(&lrpc::shim::calling_thread, sizeof lrpc::shim::calling_thread);
    return true;
  }();
  (void)local;
  return {
      .set_up =
          [astacks, refused] {
            membarrier_is_refused = refused;
            make_world(astacks);
          },
      .threads = std::move(threads),
      .at_end =
          [] { explore::expect(world().list.count_idle() == world().count, "an A-stack is lost, or there twice"); }};
}

void twice(void (*what)()) {
  what();
  what();
}

const std::vector<NamedProgram>& programs() {
  static const std::vector<NamedProgram> all{
      {"two_callers_of_one", program(1, {[] { twice(call); }, [] { twice(call); }})},
      {"a_caller_and_a_starter_of_one", program(1, {[] { twice(call); }, [] { twice(started_call); }})},
      {"two_starters_of_one", program(1, {[] { twice(started_call); }, [] { twice(started_call); }})},
      {"a_start_and_a_starter", program(2, {call_and_start, started_call})},
      {"a_start_and_a_caller_that_does_not_wait", program(2, {keep_one_of_two, call_without_waiting})},
      {"a_start_and_the_trimmer", program(1, {call_and_start, trim})},
      {"a_caller_and_the_trimmer", program(1, {[] { twice(call); }, [] { twice(trim); }})},
      {"a_slow_caller_and_the_trimmer", program(1, {[] { call(), slow_call(); }, trim})},
      {"a_starter_and_the_trimmer", program(2, {[] { twice(started_call); }, [] { twice(trim); }})},
      {"three_callers_of_two", program(2, {call, [] { twice(call); }, call})},
      {"without_membarrier_two_callers_of_one", program(1, {[] { twice(call); }, [] { twice(call); }}, true)},
      {"without_membarrier_two_starters_of_one",
       program(1, {[] { twice(started_call); }, [] { twice(started_call); }}, true)},
      {"without_membarrier_a_starter_and_the_trimmer",
       program(1, {[] { twice(started_call); }, [] { twice(trim); }}, true)},
      {"without_membarrier_a_caller_and_the_trimmer", program(1, {[] { twice(call); }, [] { twice(trim); }}, true)},
      {"two_callers_and_the_end", program(1, {[] { twice(call); }, call, revoke})},
      {"a_caller_and_one_that_starves", program(1, {[] { twice(call_in_turn); }, starving_call})},
      {"a_starter_and_one_that_starves", program(1, {[] { twice(started_call_in_turn); }, starving_call})},
      {"two_that_starve", program(1, {starving_call, starving_call, call_in_turn})},
  };
  return all;
}

const std::set<std::string> kNeeded{
    // A thread that ends a lease sees what the owner has done, or the owner sees that the lease is wanted.
    "heavy_fence",
    "put: lease->in_call.store(0, std::memory_order_release); [store release]",
    "put_slow: lease.in_call.store(0, std::memory_order_release); [store release]",
    "put_spare: lease.moving.store(0, std::memory_order_release); [store release]",
    "set_wanted: wanted.store(is ? 1 : 0, std::memory_order_release); [store release]",
    "take_from: if (lease.in_call.load(std::memory_order_acquire) != 0) return nullptr; [load acquire]",
    "take_from: const bool at_spares = lease.moving.load(std::memory_order_acquire) != 0; [load acquire]",
    "take_spare: if (lease.wanted.load(std::memory_order_acquire) == 0) [[likely]] { [load acquire]",
    "take_spare: lease.moving.store(0, std::memory_order_release); [store release]",
    // The taker of an A-stack sees what was done with it. A thread that takes the top of a stack sees what lies below,
    // also after it has lost a race for another top.
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one line of the code, too long for one here
    "pop_from: if (stack.compare_exchange_weak(top, next, std::memory_order_acquire, std::memory_order_acquire)) "
    "return &record; [failed update acquire]",
    "pop_from: std::uint64_t top = stack.load(std::memory_order_acquire); [load acquire]",
    "push_on: } while (!stack.compare_exchange_weak(top, next, std::memory_order_release, "
    "std::memory_order_relaxed)); [update release]",
    // A waiting thread sees an A-stack or the end of the binding, or is seen waiting.
    "heavy_fence: std::atomic_thread_fence(std::memory_order_seq_cst); [fence seq_cst]",
    "put_idle: std::atomic_thread_fence(std::memory_order_seq_cst); [fence seq_cst]",
    "put_shared: std::atomic_thread_fence(std::memory_order_seq_cst); [fence seq_cst]",
    "put_slow: std::atomic_thread_fence(std::memory_order_seq_cst); [fence seq_cst]",
    "raise: word_.fetch_add(kNews, std::memory_order_seq_cst); [update seq_cst]",
    "look: [[nodiscard]] std::uint32_t look() const noexcept { return word_.load(std::memory_order_seq_cst); } "
    "[load seq_cst]",
};

TEST(Leases, need_these_orders_and_no_others) { expect_to_be_needed(programs(), kNeeded); }

INSTANTIATE_TEST_SUITE_P(leases, Explored, testing::ValuesIn(programs()), name_of_program);

}  // namespace
}  // namespace testing_lrpc
