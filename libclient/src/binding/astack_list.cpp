#include "lrpc/detail/client/binding/astack_list.h"

#include <pthread.h>

#include <algorithm>
#include <new>

namespace lrpc::client {

namespace {

/// One bit for each number that a thread has. Each living thread has one of its own, as long as there are any, until it
/// ends. What is leased under a number passes to the number's next owner.
constinit std::atomic<std::uint32_t> used_numbers{0};

unsigned acquire_number() noexcept {
  constexpr std::uint32_t kAll = (1ULL << kLeasingThreads) - 1;
  std::uint32_t used = used_numbers.load(std::memory_order_relaxed);
  while (used != kAll) {
    const auto number = static_cast<unsigned>(__builtin_ctz(~used));
    if (used_numbers.compare_exchange_weak(used, used | 1U << number, std::memory_order_acquire)) return number;
  }
  return kLeasingThreads;
}

/// Its bit in used_numbers; 0 for a thread without a number.
std::uint32_t bit_of(unsigned number) noexcept { return number < kLeasingThreads ? 1U << number : 0U; }

void give_number_back(void* /*marked*/) noexcept {
  const unsigned number = shim::calling_thread.number();
  shim::calling_thread.set_number(kLeasingThreads);
  used_numbers.fetch_and(~bit_of(number), std::memory_order_release);
}

/// The key's destructor gives the number back when a thread ends. A thread_local's destructor would not do: to register
/// it takes memory, without which the C library ends the process. The key is made before there are threads: a child
/// forked while a thread makes it would wait for that thread for ever. A call in a program's own static initialisation
/// may come before that; then its thread has no number yet.
pthread_key_t number_key;
const bool have_number_key = pthread_key_create(&number_key, &give_number_back) == 0;

void number_this_thread() noexcept {
  if (!have_number_key || !shim::have_asymmetric_fence || shim::calling_thread.number() != kLeasingThreads) return;
  const unsigned number = acquire_number();
  if (number == kLeasingThreads) return;
  shim::calling_thread.set_number(number);
  if (pthread_setspecific(number_key, &number_key) != 0) give_number_back(nullptr);
}

}  // namespace

void forget_other_threads_numbers() noexcept {
  used_numbers.store(bit_of(shim::calling_thread.number()), std::memory_order_relaxed);
}

SecondaryRecords::~SecondaryRecords() {
  for (auto& block : blocks_) delete[] block.load(std::memory_order_relaxed);
}

std::span<shim::LinkageRecord> SecondaryRecords::block(std::uint32_t place) noexcept {
  shim::LinkageRecord* records = blocks_[place].load(std::memory_order_acquire);
  if (records == nullptr) {
    records = new (std::nothrow) shim::LinkageRecord[shim::kMostAStacksInSecondary];
    if (records == nullptr) return {};
    for (std::uint32_t i = 0; i < shim::kMostAStacksInSecondary; ++i)
      records[i].index = first_ + place * shim::kMostAStacksInSecondary + i;
    blocks_[place].store(records, std::memory_order_release);
  }
  return {records, shim::kMostAStacksInSecondary};
}

void AStackList::fill(std::span<shim::LinkageRecord> all, std::uint32_t first, std::uint32_t count,
                      const SecondaryRecords* secondary) noexcept {
  all_ = all;
  secondary_ = secondary;
  for (std::uint32_t i = count; i > 0; --i) push(all_[first + i - 1]);
}

void AStackList::add(std::span<shim::LinkageRecord> grown) noexcept {
  for (std::size_t i = grown.size(); i > 0; --i) push(grown[i - 1]);
  wake_waiters();
}

shim::LinkageRecord* AStackList::take_any(bool& moving) noexcept {
  moving = false;
  number_this_thread();
  surrender_own_lease();
  if (shim::LinkageRecord* record = take_leased(own_lease())) return record;
  if (shim::LinkageRecord* record = take_spare()) return record;
  if (shim::LinkageRecord* record = pop()) return record;
  if (shim::LinkageRecord* record = pop_secondary()) return record;
  return end_a_lease(moving);
}

shim::LinkageRecord* AStackList::take_own() noexcept {
  surrender_own_lease();
  if (shim::LinkageRecord* record = take_spare()) return record;
  // By an exchange, not as in take_leased(): another thread may be ending our lease; one of the two gets the record.
  Lease& lease = own_lease();
  return lease.in_call.load(std::memory_order_relaxed) == 0 ? lease.remove() : nullptr;
}

void AStackList::put_shared(shim::LinkageRecord& record) noexcept {
  push(record);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_relaxed) != 0) wake_waiters();
}

void AStackList::Lease::set_wanted(bool is) noexcept {
  wanted.store(is ? 1 : 0, std::memory_order_release);
  if (is) {
    record.fetch_or(kWanted, std::memory_order_relaxed);
    return;
  }
  // The owner may have just taken its record out: then the word is kNone, which keeps the bit.
  std::uintptr_t now = record.load(std::memory_order_relaxed);
  while (now != kNone && !record.compare_exchange_weak(now, now & ~kWanted, std::memory_order_release)) {
  }
}

/// Takes the record out, wanted or not. Called by the owner, or by a thread that has seen that the lease is in no call.
shim::LinkageRecord* AStackList::Lease::remove() noexcept {
  return reinterpret_cast<shim::LinkageRecord*>(record.exchange(kNone, std::memory_order_acquire) & ~kWanted);
}

void AStackList::leave_untaken(Lease& lease) noexcept { lease.in_call.store(0, std::memory_order_release); }

void AStackList::put_slow(shim::LinkageRecord& record) noexcept {
  Lease& lease = own_lease();
  if (lease.leased() == &record) {
    lease.in_call.store(0, std::memory_order_release);  // still leased to this thread
  } else if (!lease_to(lease, record)) {
    push(record);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_relaxed) != 0) serve_waiters();
}

/// A thread that keeps an idle A-stack takes it again before the threads that it wakes have looked. So while any thread
/// starves, this one keeps none, not even a spare.
void AStackList::serve_waiters() noexcept {
  if (anybody_starves()) {  // L9
    while (shim::LinkageRecord* record = take_own()) push(*record);
  }
  wake_waiters();
}

/// Leases an A-stack to this thread if it has none. Under the lock, so that no lease begins while another thread ends
/// it.
bool AStackList::lease_to(Lease& lease, shim::LinkageRecord& record) noexcept {
  if (shim::calling_thread.number() >= kLeasingThreads || is_secondary(record) || lease.leased() != nullptr)
    return false;
  const std::unique_lock lock(ending_, std::try_to_lock);
  if (!lock.owns_lock() || leasing_ended_.load(std::memory_order_relaxed)) return false;
  lease.record.store(reinterpret_cast<std::uintptr_t>(&record), std::memory_order_release);  // L5
  return true;
}

void AStackList::give_up(const shim::LinkageRecord& record) noexcept {
  Lease& lease = own_lease();
  if (lease.leased() != &record) return;
  (void)lease.remove();
  lease.in_call.store(0, std::memory_order_release);
}

void AStackList::stop_leasing() noexcept {
  // Permanent, even if the kernel allows a fence again: from now on only its owner may touch a lease. `wanted` stays
  // set, so that each owner surrenders its lease at its next call.
  leasing_ended_.store(true, std::memory_order_release);  // L7
  for (Lease& lease : leases_) lease.set_wanted(true);
}

shim::LinkageRecord* AStackList::end_a_lease(bool& moving) noexcept {
  std::lock_guard lock(ending_);
  if (leasing_ended_.load(std::memory_order_relaxed)) return nullptr;  // only their owners may touch the leases
  for (Lease& lease : leases_) {
    const bool any = lease.leased() != nullptr || lease.spares.load(std::memory_order_relaxed) != nullptr;
    if (!any) continue;
    lease.set_wanted(true);  // L6
    if (!shim::heavy_fence()) {
      stop_leasing();
      return nullptr;
    }
    // Either the owner sees `wanted`, or we see that it is in a call or moving a spare.
    shim::LinkageRecord* taken = take_from(lease, moving);
    lease.set_wanted(false);
    if (taken != nullptr) return taken;
  }
  return nullptr;
}

/// Takes the newest spare: to take the oldest would be fairer, but needs a walk down the list. Sets `moving` if there
/// are spares, but the owner is moving one.
shim::LinkageRecord* AStackList::take_from(Lease& lease, bool& moving) noexcept {
  const bool at_spares = lease.moving.load(std::memory_order_acquire) != 0;
  if (shim::LinkageRecord* spare = lease.spares.load(std::memory_order_relaxed)) {
    if (!at_spares) {
      lease.spares.store(spare->below, std::memory_order_relaxed);
      return spare;
    }
    moving = true;
  }
  if (lease.in_call.load(std::memory_order_acquire) != 0) return nullptr;
  return lease.remove();
}

void AStackList::take_idle(std::vector<shim::LinkageRecord*>& idle) noexcept {
  const auto take_all = [&idle](auto&& next) {  // up to the capacity: push_back() must not allocate
    while (idle.size() != idle.capacity()) {
      shim::LinkageRecord* const record = next();
      if (record == nullptr) return;
      idle.push_back(record);
    }
  };
  take_all([this] { return pop(); });
  std::ranges::reverse(idle);
  take_all([this] { return pop_secondary(); });
  bool moving = false;
  take_all([this, &moving] { return end_a_lease(moving); });
}

void AStackList::put_idle(const std::vector<shim::LinkageRecord*>& idle) noexcept {
  for (shim::LinkageRecord* record : idle) push(*record);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_relaxed) != 0) wake_waiters();
}

void AStackList::surrender_own_lease() noexcept {
  Lease& lease = own_lease();
  // L8. Acquire, so that we see what others took from our lease before leasing ended.
  if (!leasing_ended_.load(std::memory_order_acquire)) return;
  bool any = false;
  while (shim::LinkageRecord* spare = lease.spares.load(std::memory_order_relaxed)) {
    lease.spares.store(spare->below, std::memory_order_relaxed);
    push(*spare);
    any = true;
  }
  if (lease.in_call.load(std::memory_order_relaxed) == 0) {
    if (shim::LinkageRecord* record = lease.remove()) {
      push(*record);
      any = true;
    }
  }
  if (!any) return;  // otherwise two waiters would wake each other for ever
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_relaxed) != 0) wake_waiters();
}

namespace {

void push_on(std::atomic<std::uint64_t>& stack, shim::LinkageRecord& record) noexcept {
  std::uint64_t top = stack.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    record.next.store(static_cast<std::uint32_t>(top), std::memory_order_relaxed);
    next = ((top >> 32) + 1) << 32 | (record.index + 1);
  } while (!stack.compare_exchange_weak(top, next, std::memory_order_release, std::memory_order_relaxed));
}

/// `records[index]` is the record of that number.
template <class Records>
shim::LinkageRecord* pop_from(std::atomic<std::uint64_t>& stack, const Records& records) noexcept {
  std::uint64_t top = stack.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(top) != 0) {
    shim::LinkageRecord& record = records[static_cast<std::uint32_t>(top) - 1];
    const std::uint64_t next = ((top >> 32) + 1) << 32 | record.next.load(std::memory_order_relaxed);
    if (stack.compare_exchange_weak(top, next, std::memory_order_acquire, std::memory_order_acquire)) return &record;
  }
  return nullptr;
}

}  // namespace

void AStackList::push(shim::LinkageRecord& record) noexcept {
  push_on(is_secondary(record) ? secondary_top_ : top_, record);
}

shim::LinkageRecord* AStackList::pop() noexcept { return pop_from(top_, all_); }

/// Always null in a binding whose supply cannot grow.
shim::LinkageRecord* AStackList::pop_secondary() noexcept {
  return secondary_ != nullptr ? pop_from(secondary_top_, *secondary_) : nullptr;
}

void AStackList::note_resting() noexcept {
  // Changes only the tag, so that whoever takes the top afterwards synchronises with this.
  const std::uint64_t one_tag = 1ULL << 32;
  const std::uint64_t noted = top_.fetch_add(one_tag, std::memory_order_acq_rel) + one_tag;
  auto next = static_cast<std::uint32_t>(noted);
  for (std::size_t i = 0; next != 0 && i < all_.size(); ++i) {
    shim::LinkageRecord& record = all_[next - 1];
    record.rested = true;
    next = record.next.load(std::memory_order_relaxed);
  }
  // If others took or put back A-stacks meanwhile, the links may have led anywhere: nothing is known.
  if (top_.load(std::memory_order_acquire) == noted) return;
  for (shim::LinkageRecord& record : all_) record.rested = false;
}

std::size_t AStackList::count_idle() const noexcept {
  std::size_t count = 0;
  // A forked child may have copied a list while it changed: then it can be circular.
  const std::size_t most = all_.size() + shim::kMostSecondaryRegions * shim::kMostAStacksInSecondary;
  const auto count_stack = [&](const std::atomic<std::uint64_t>& top, const auto& records) {
    auto next = static_cast<std::uint32_t>(top.load(std::memory_order_acquire));
    for (; next != 0 && count <= most; next = records[next - 1].next.load(std::memory_order_relaxed)) ++count;
  };
  count_stack(top_, all_);
  if (secondary_ != nullptr) count_stack(secondary_top_, *secondary_);
  for (const Lease& lease : leases_) {
    if (lease.leased() != nullptr) ++count;
    const shim::LinkageRecord* spare = lease.spares.load(std::memory_order_acquire);
    for (; spare != nullptr && count <= most; spare = spare->below) ++count;
  }
  return count;
}

bool AStackList::looks_empty() const noexcept {
  if (any_free()) return false;
  if (leasing_ended_.load(std::memory_order_acquire)) return true;  // only its owner may take what is leased
  for (const Lease& lease : leases_) {
    if (lease.leased() != nullptr && lease.in_call.load(std::memory_order_acquire) == 0) return false;
    if (lease.moving.load(std::memory_order_acquire) == 0 && lease.spares.load(std::memory_order_acquire) != nullptr)
      return false;
  }
  return true;
}

void AStackList::wait(std::uint32_t seen, std::chrono::nanoseconds limit, std::span<const shim::FutexWait> also,
                      bool behind) noexcept {
  const std::uint64_t before = waiters_.fetch_add(1, std::memory_order_seq_cst);  // G3
  // The heavy fence pairs with the light one in put(); if the kernel refuses it, the sleep is still bounded. A thread
  // that waits behind reads nothing that put() stores. Its fetch_add both counts it and reads how many starve, which is
  // enough (see end_starving()).
  if (!behind) (void)shim::heavy_fence();
  if (behind ? before >= kStarver : looks_empty()) {
    if (also.empty()) {
      wakes_.sleep_unless_changed(seen, limit);
    } else {
      std::array<shim::FutexWait, shim::kMostFutexWaits> words{wakes_.unless_changed(seen)};
      const std::size_t count = std::min(also.size(), words.size() - 1);
      std::copy_n(also.begin(), count, words.begin() + 1);
      (void)shim::futex_wait_any(std::span(words).first(count + 1), limit);
    }
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

void AStackList::end_starving() noexcept {
  // L9: a thread that waits behind either has counted itself before this, and is woken, or reads in wait() that nobody
  // starves.
  const std::uint64_t left = waiters_.fetch_sub(kStarver, std::memory_order_seq_cst) - kStarver;
  if (left != 0 && left < kStarver) wake_waiters();
}

void AStackList::tell_waiters() noexcept {
  // A waiter that we do not see here announces itself later, and then finds that the count differs from the one that it
  // read.
  wakes_.count();
  if (waiters_.load(std::memory_order_seq_cst) != 0) wake_waiters();
}

}  // namespace lrpc::client
