// 2 · the slow half: an A-stack for a call of a thread that has none leased; and the quarantine, where A-stacks stay
// until the server has returned them.
#include <algorithm>
#include <array>
#include <chrono>

#include "lrpc/detail/client/binding/binding_object.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/system/cancellation.h"
#include "secondary_astacks.h"
#include "waiting.h"

namespace lrpc::client {
namespace {

/// While a request for more A-stacks is under way: how long to wait for an old one between two looks for the answer.
constexpr std::chrono::milliseconds kGrowthLook{5};
/// How long to wait between two looks while another thread holds idle A-stacks for a moment: the watcher, which wakes
/// the waiters when it puts them back; the owner of spares, which wakes nobody after it has taken one of several; or a
/// starving thread, for which they were put back.
constexpr std::chrono::milliseconds kHeldLook{1};

/// A caller that has waited this long for an A-stack starves.
constexpr std::chrono::milliseconds kStarving{10};

/// While one-way and abandoned calls have all A-stacks: how long to sleep for the oldest one-way call alone, which
/// mostly returns first. For each call that a caller sleeps for, the server makes a system call. A call that does not
/// return meanwhile is slow: nobody sleeps for it alone again.
constexpr std::chrono::milliseconds kOldestAlone{1};
/// After that, the most such calls to sleep for.
constexpr std::size_t kMostAwaited = 64;

/// How long a caller has waited for an A-stack, and whether it must let others go first (L9). Without this, a thread
/// that calls without pause would take its own A-stack again each time before the caller that it wakes has looked.
class Patience {
 public:
  explicit Patience(AStackList& list) noexcept : list_(list) {}
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  ~Patience() {
    if (starves_) list_.end_starving();
  }
  /// Whether starving threads go first. They no longer do if they leave an A-stack idle for kHeldLook: then they have
  /// no processor.
  [[nodiscard]] bool is_behind() noexcept {
    if (starves_ || !list_.anybody_starves()) return false;
    if (list_.looks_empty()) {
      idle_since_ = {};
      return true;
    }
    const Waiting::Clock::time_point now = Waiting::Clock::now();
    if (idle_since_ == Waiting::Clock::time_point()) idle_since_ = now;
    if (now - idle_since_ < kHeldLook) return true;
    idle_since_ = {};
    return false;
  }
  /// Call it before each sleep. True: this caller starves from now on, and must look once more before it sleeps.
  [[nodiscard]] bool ends() noexcept {
    if (starves_) return false;
    const Waiting::Clock::time_point now = Waiting::Clock::now();
    if (since_ == Waiting::Clock::time_point()) since_ = now;
    if (now - since_ < kStarving) return false;
    list_.starve();
    return starves_ = true;
  }

 private:
  AStackList& list_;
  Waiting::Clock::time_point since_{};       ///< Zero: it has not slept yet.
  Waiting::Clock::time_point idle_since_{};  ///< Zero: the last look found none for the starving threads.
  bool starves_ = false;
};

/// Waits until an A-stack is put back after `seen` was read, until one of the words in `sent` (at most kMostAwaited)
/// changes, or for a cancellation. `behind`: see AStackList::wait().
void wait_for_put(AStackList& list, std::uint32_t seen, const Waiting& waiting, std::chrono::nanoseconds limit,
                  std::span<const shim::FutexWait> sent, bool behind = false) noexcept {
  std::array<shim::FutexWait, kMostAwaited + Waiting::kMostCancellations> words{};
  std::copy(sent.begin(), sent.end(), words.begin());
  const auto room = std::span(words).first(sent.size() + Waiting::kMostCancellations);
  const std::size_t count = waiting.append(room, sent.size());
  if (count == room.size()) limit = std::min<std::chrono::nanoseconds>(limit, Waiting::kCrowded);
  list.wait(seen, limit, room.first(count), behind);
}

}  // namespace

BindingObject::Taken BindingObject::take_slow(AStackList& list) noexcept {
  const shim::NoCancellation never;
  const Waiting waiting(parts_.call_timeout);
  Patience patience(list);
  for (;;) {
    LRPC_STEP("client 2 slow");
    const std::uint32_t seen = list.wakes();  // G3: a thread that revokes raises the count afterwards
    if (revoked()) return {nullptr, Errc::binding_revoked};
    const std::uint32_t phase = trim_phase_.load(std::memory_order_acquire);
    bool moving = false;
    const bool behind = patience.is_behind();
    if (shim::LinkageRecord* record = behind ? list.take_own() : list.take_any(moving)) return {record};
    if (any_quarantined_.load(std::memory_order_acquire) && release_quarantined(list)) continue;
    // The watcher may have held idle A-stacks when we looked, and have put them back since.
    if (trim_phase_.load(std::memory_order_acquire) != phase) continue;
    const bool held = behind || moving || phase % 2 != 0;
    if (!held && parts_.supply == AStackSupply::fail) return {nullptr, Errc::no_astack};
    std::chrono::nanoseconds limit = waiting.left(shim::kBoundedSleep);
    if (limit.count() <= 0 || waiting.cancelled()) return {nullptr, waiting.why_over()};
    if (parts_.supply != AStackSupply::fail && patience.ends()) continue;
    if (held) {
      // Yielding would not help: the other thread may be bound to our processor and have a lower priority.
      limit = std::min<std::chrono::nanoseconds>(limit, kHeldLook);
      wait_for_put(list, seen, waiting, limit, {}, behind);
      continue;
    }
    if (secondary_ != nullptr) limit = wait_for_growth(list, limit);
    if (limit.count() <= 0) continue;
    if (any_quarantined_.load(std::memory_order_acquire)) {
      wait_for_quarantined(list, seen, waiting, limit);
    } else {
      wait_for_put(list, seen, waiting, limit, {});
    }
    if (!parts_.watched) check_server();
  }
}

/// How long to wait for an A-stack of the list before the next look; zero: there may be one now.
std::chrono::nanoseconds BindingObject::wait_for_growth(AStackList& list, std::chrono::nanoseconds limit) noexcept {
  switch (secondary_->look(static_cast<std::uint16_t>(&list - lists_.get()), limit)) {
    case SecondaryAStacks::Look::added: return std::chrono::nanoseconds(0);
    case SecondaryAStacks::Look::waiting: return std::min<std::chrono::nanoseconds>(limit, kGrowthLook);
    case SecondaryAStacks::Look::refused: return limit;
  }
  return limit;
}

// ---- Quarantine ----

void BindingObject::quarantine(shim::LinkageRecord& record) noexcept {
  record.quarantined = true;
  if (forgotten_) return;
  if (has_been_let_go()) return release();  // the end of a call that outlived its binding
  AStackList& list = lists_[record.astack.astack_class];
  {
    std::lock_guard lock(quarantine_mutex_);
    quarantined_.push_back(&record);
    any_quarantined_.store(true, std::memory_order_release);
  }
  // G3: a thread that found the quarantine empty sleeps until an A-stack is put back. Wake it: now it can wait for a
  // return.
  list.tell_waiters();
}

bool BindingObject::release_quarantined(AStackList& list) noexcept {
  bool released = false;
  std::lock_guard lock(quarantine_mutex_);
  std::erase_if(quarantined_, [&](shim::LinkageRecord* record) {
    if (&lists_[record->astack.astack_class] != &list) return false;
    if (!shim::load_word(*record->astack.head).is(shim::Turn::returned, record->generation())) return false;  // T16
    LRPC_STEP("T16");
    record->quarantined = false;
    list.put_shared(*record);
    return released = true;
  });
  any_quarantined_.store(!quarantined_.empty(), std::memory_order_release);
  return released;
}

std::size_t BindingObject::in_quarantine() noexcept {
  if (forgotten_) return 0;
  std::lock_guard lock(quarantine_mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(quarantined_, [](const shim::LinkageRecord* record) {
    return !shim::load_word(*record->astack.head).is(shim::Turn::returned, record->generation());
  }));
}

void BindingObject::wait_for_quarantined(AStackList& list, std::uint32_t seen, const Waiting& waiting,
                                         std::chrono::nanoseconds limit) noexcept {
  struct Awaited {
    shim::LinkageRecord* record = nullptr;
    shim::AStackHead* head = nullptr;
    std::uint64_t generation = 0;
    shim::Turn turn = shim::Turn::called;
  };
  std::array<Awaited, kMostAwaited> calls{};
  std::size_t count = 0;
  /// The oldest one-way call that is not known to be slow.
  const Awaited* fresh = nullptr;
  struct Looking {  // keeps secondary A-stacks mapped while this thread reads them without holding them
    BindingObject& binding;
    bool at_secondary = false;
    ~Looking() {
      if (!at_secondary) return;
      const std::lock_guard lock(binding.quarantine_mutex_);
      --binding.quarantine_readers_;
    }
  } looking{*this};
  {
    std::lock_guard lock(quarantine_mutex_);
    bool any_secondary = false;
    for (const shim::Turn turn : {shim::Turn::called, shim::Turn::abandoned}) {  // one-way calls mostly return sooner
      for (shim::LinkageRecord* record : quarantined_) {                         // the oldest first
        if (&lists_[record->astack.astack_class] != &list || count == calls.size()) continue;
        const shim::CallWord word = shim::load_word(*record->astack.head);
        if (word.is(shim::Turn::returned, record->generation())) return;  // since release_quarantined() has looked
        if (!word.is(turn, record->generation())) continue;
        calls[count] = {record, record->astack.head, record->generation(), turn};
        const bool slow = turn == shim::Turn::abandoned || record->slow_generation == record->generation();
        if (fresh == nullptr && !slow) fresh = &calls[count];
        ++count;
        any_secondary |= record->index >= records_.size();
      }
    }
    looking.at_secondary = any_secondary;
    if (any_secondary) ++quarantine_readers_;
  }
  if (count == 0) return wait_for_put(list, seen, waiting, limit, {});
  for (std::uint32_t i = 0; fresh != nullptr && i < poll_limits_.wait; ++i) {
    if (!shim::load_word(*fresh->head).is(fresh->turn, fresh->generation)) return;
    shim::poll_delay();
  }
  // Sleeps for some of them. True: none has returned within `longest`.
  const auto sleep = [&](std::span<const Awaited> some, std::chrono::nanoseconds longest) noexcept {
    std::array<shim::FutexWait, kMostAwaited> words{};
    for (std::size_t i = 0; i < some.size(); ++i) {
      const Awaited& call = some[i];
      words[i] = {&call.head->word, 0, true};  // T3
      if (shim::announce_sleep(*call.head, call.generation, revoked_, words[i].expected, call.turn)) continue;
      // A server that sets REVOKED in a binding that is not revoked would make us look at this word for ever.
      const shim::CallWord word = shim::load_word(*call.head);
      if (word.is(call.turn, call.generation) && word.revoked()) revoke();
      return false;
    }
    const auto until = std::chrono::steady_clock::now() + longest;
    wait_for_put(list, seen, waiting, longest, std::span(words).first(some.size()));
    return std::chrono::steady_clock::now() >= until;
  };
  if (fresh != nullptr && count > 1 && limit > kOldestAlone) {
    if (!sleep({fresh, 1}, kOldestAlone)) return;
    {
      const std::lock_guard lock(quarantine_mutex_);
      fresh->record->slow_generation = fresh->generation;
    }
    limit -= kOldestAlone;
  }
  if (sleep(std::span(calls).first(count), limit)) overrule_hints(*calls[0].head);
}

bool BindingObject::anybody_reads_quarantine() noexcept {
  const std::lock_guard lock(quarantine_mutex_);
  return quarantine_readers_ != 0;
}

void BindingObject::make_room_in_quarantine(std::uint32_t first_secondary, std::uint32_t place) {
  const std::lock_guard lock(quarantine_mutex_);
  quarantined_.reserve(first_secondary + (std::size_t{place} + 1) * shim::kMostAStacksInSecondary);
}

}  // namespace lrpc::client
