// Leader and followers: which of the waiting threads receives (docs/DEVICES.md, "The engine").
#include <unistd.h>

#include <memory>
#include <new>
#include <vector>

#include "lrpc/detail/shim/system/of_this_thread.h"
#include "netrpc/devices/engine/uring_receiver.h"

namespace lrpc::netrpc {

namespace {

struct OwnRing {
  std::uint64_t engine = 0;
  std::shared_ptr<UringReceiver> ring;
};
/// A thread's rings, one an engine.
using OwnRings = shim::OfThisThread<std::vector<OwnRing>>;

/// A user's procedure that ends within this time does not make the deputy take over sooner.
constexpr Duration kLongProcedure = std::chrono::microseconds(100);
constexpr std::uint32_t kServingMemory = 64;
constexpr std::uint32_t kLongMemory = 16;

}  // namespace

/// A ring for this thread; null if no more can be made.
std::shared_ptr<UringReceiver> UringEngine::next_ring() {
  Core& core = *core_;
  while (!core.prepared.empty()) {
    auto ring = std::move(core.prepared.back());
    core.prepared.pop_back();
    if (ring->enable()) return ring;
  }
  if (core.no_more_rings) return nullptr;
  auto made = std::make_shared<UringReceiver>(*this);
  return made->open() ? made : nullptr;
}

Receiver& UringEngine::my_receiver() {
  Core& core = *core_;
  if (kind_ != EngineKind::uring) return *core.epoll;
  if (const auto* const mine = OwnRings::if_made(); mine != nullptr)
    for (const OwnRing& own : *mine)
      if (own.engine == core.identifier) return *own.ring;
  try {
    auto& mine = OwnRings::get();
    mine.reserve(mine.size() + 1);
    core.rings.reserve(core.rings.size() + 1);
    if (auto made = next_ring()) {
      // The rings of destroyed engines: only this thread still holds them.
      std::erase_if(mine, [](const OwnRing& own) { return own.ring->over(); });
      std::erase_if(core.rings, [](const auto& ring) { return ring.expired(); });
      core.rings.emplace_back(made);
      mine.push_back({core.identifier, made});
      return *mine.back().ring;
    }
  } catch (const std::bad_alloc&) {  // epoll for now; the next wait tries again
  }
  return *core.epoll;
}

bool UringEngine::wait(Host& host, const std::function<bool()>& done, Time deadline) {
  attach(host);
  Core& core = *core_;
  bool satisfied = done();
  while (!satisfied && (deadline == Time::max() || host.now() < deadline)) {
    if (core.leader == nullptr || core.leader->thread == std::this_thread::get_id()) {
      Lead me{.done = &done, .deadline = deadline};
      lead(me);
    } else {
      follow(done, deadline);
    }
    satisfied = done();
  }
  // This thread may be a follower that was woken to lead, but whose `done` was true already.
  if (core.leader == nullptr) hand_over(false);
  return satisfied;
}

bool UringEngine::finished(const Lead& me) const {
  const Core& core = *core_;
  if (me.done != nullptr) return (*me.done)() || (me.deadline != Time::max() && core.host->now() >= me.deadline);
  if (core.stopping.load(std::memory_order_relaxed)) return true;
  // A service thread has received for a caller, which had to be woken: if this host only calls, let the caller receive
  // for itself the next time.
  if (!core.woke_follower || core.serving != 0) return false;
  for (const Follower* follower = core.followers.first(); follower != nullptr; follower = follower->link.after)
    if (follower->word.load(std::memory_order_relaxed) == 0) return false;
  return true;
}

void UringEngine::lead(Lead& me) {
  Core& core = *core_;
  me.outer = core.leader;
  core.leader = &me;
  core.turns.fetch_add(1, std::memory_order_relaxed);
  core.woke_follower = false;
  EventManager& events = core.host->events();
  // Shepherding may release the monitor to run a user's procedure: another thread may lead when it returns.
  while (core.leader == &me) {
    if (core.next_arrival < core.arrivals.size()) {
      shepherd_one();
      continue;
    }
    events.run_due();
    if (core.leader != &me || core.next_arrival < core.arrivals.size()) continue;
    if (finished(me)) break;
    std::optional<Time> until = events.next_due();
    if (me.deadline != Time::max() && (!until || *until > me.deadline)) until = me.deadline;
    Receiver& receiver = my_receiver();
    me.in_kernel = true;
    receiver.receive(until);
    me.in_kernel = false;
    core.kicked = false;
  }
  if (core.leader != &me) return;
  core.leader = me.outer;
  core.turns.fetch_add(1, std::memory_order_relaxed);
  if (core.leader == nullptr) hand_over(core.serving != 0);
  if (core.serving != 0 && me.done != nullptr) --core.serving;
}

void UringEngine::shepherd_one() noexcept {
  Core& core = *core_;
  Arrival arrival = std::move(core.arrivals[core.next_arrival]);
  if (++core.next_arrival == core.arrivals.size()) {
    core.arrivals.clear();
    core.next_arrival = 0;
  }
  const EngineSocket* const socket = core.find(arrival.socket);
  if (socket == nullptr) return;
  if (socket->watched) return socket->reader->readable();
  socket->reader->arrived(std::move(arrival.message), {arrival.from.data(), arrival.from_size});
}

/// Called when nobody leads any more. Wakes a follower; if there is none, the deputy, but only if it sleeps or with
/// `now`: a message is expected at any moment.
void UringEngine::hand_over(bool now) noexcept {
  Core& core = *core_;
  if (!core.followers.empty()) {
    std::atomic<std::uint32_t>& word = core.followers.first()->word;
    if (word.exchange(1, std::memory_order_relaxed) != 0) return;
    Core::add_one(core.counts.wakes);
    shim::futex_wake_private(word, 1);
  } else if (core.watch == Core::Watch::asleep || now) {
    wake_deputy(now);
  }
}

void UringEngine::follow(const std::function<bool()>& done, Time deadline) {
  Core& core = *core_;
  Follower me{.done = &done};
  core.followers.push_back(me);
  Monitor& monitor = core.host->monitor();
  while (me.word.load(std::memory_order_relaxed) == 0 && (deadline == Time::max() || core.host->now() < deadline)) {
    monitor.unlock();
    (void)shim::futex_wait_private(me.word, 0, left_until(deadline));
    monitor.lock();
  }
  core.followers.remove(me);
}

void UringEngine::wake(Host& host) noexcept {
  attach(host);
  Core& core = *core_;
  for (Follower* follower = core.followers.first(); follower != nullptr; follower = follower->link.after) {
    if (follower->word.load(std::memory_order_relaxed) != 0 || !(*follower->done)()) continue;
    follower->word.store(1, std::memory_order_relaxed);
    core.woke_follower = true;
    Core::add_one(core.counts.wakes);
    shim::futex_wake_private(follower->word, 1);
  }
  if (core.leader != nullptr && core.leader->in_kernel && core.leader->done != nullptr && (*core.leader->done)())
    kick();
}

void UringEngine::kick() noexcept {
  Core& core = *core_;
  if (core.kicked || core.leader == nullptr || !core.leader->in_kernel) return;
  core.kicked = true;
  Core::add_one(core.counts.wakes);
  const std::uint64_t one = 1;
  (void)!::write(core.kick_event, &one, sizeof one);
}

void UringEngine::outside(Host& host, const std::function<void()>& procedure) {
  attach(host);
  Core& core = *core_;
  Lead* const mine =
      core.leader != nullptr && core.leader->thread == std::this_thread::get_id() ? core.leader : nullptr;
  if (mine != nullptr) {
    core.leader = nullptr;
    core.turns.fetch_add(1, std::memory_order_relaxed);
    hand_over(core.long_procedures != 0 || core.next_arrival < core.arrivals.size());
  }
  core.serving = kServingMemory;
  const Time began = host.now();
  host.monitor().unlock();
  procedure();
  host.monitor().lock();
  if (host.now() - began > kLongProcedure) {
    core.long_procedures = kLongMemory;
  } else if (core.long_procedures != 0) {
    --core.long_procedures;
  }
  if (mine != nullptr && core.leader == nullptr) {
    core.leader = mine;
    core.turns.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace lrpc::netrpc
