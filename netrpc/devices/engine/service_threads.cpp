// The threads that receive when nobody else does: one leads or stands by as the deputy, the others are spare.
#include <cassert>

#include "netrpc/devices/engine/uring_receiver.h"

namespace lrpc::netrpc {

namespace {
/// The time between two looks of the deputy. It takes the lead if nobody has led in between.
constexpr Duration kFirstLook = std::chrono::microseconds(200);
/// While the lead changes between other threads, the time is doubled up to this.
constexpr Duration kLastLook = std::chrono::microseconds(800);
/// After so many looks at the same leader the deputy sleeps; that leader wakes it when it stops leading.
constexpr int kQuietLooks = 5;
}  // namespace

Status UringEngine::start(Host& host, unsigned threads) {
  {
    const Shepherd inside(host.monitor());
    attach(host);
    core_->stopping.store(false, std::memory_order_relaxed);
  }
  try {
    for (unsigned i = 0; i < threads; ++i) core_->threads.emplace_back([this] { serve(); });
  } catch (const std::system_error& error) {
    stop();
    return system_error("pthread_create", error.code().value());
  }
  return {};
}

void UringEngine::stop() {
  Core& core = *core_;
  if (core.host == nullptr || core.threads.empty()) return;
  {
    const Shepherd inside(core.host->monitor());
    assert((core.leader == nullptr || core.leader->thread != std::this_thread::get_id()) && "not from a protocol");
    core.stopping.store(true, std::memory_order_relaxed);
    kick();
    core.deputy_word.raise(1);
    core.spare_word.raise();
  }
  for (std::thread& thread : core.threads) thread.join();
  core.threads.clear();
}

void UringEngine::serve() {
  Core& core = *core_;
  Monitor& monitor = core.host->monitor();
  const Shepherd inside(monitor);
  bool take = true;
  while (!core.stopping.load(std::memory_order_relaxed)) {
    if (take && core.leader == nullptr) {
      Core::add_one(core.counts.takeovers);
      if (core.spares != 0) {
        Core::add_one(core.counts.wakes);
        core.spare_word.raise(1);  // P1
      }
      Lead me;
      lead(me);
      take = false;
    } else if (core.watch == Core::Watch::nobody) {
      watch();
      take = true;
    } else {
      const std::uint32_t seen = core.spare_word.look();  // P2
      ++core.spares;
      monitor.unlock();
      core.spare_word.sleep_unless_changed(seen);  // P3
      monitor.lock();
      --core.spares;
      take = false;
    }
  }
}

/// The deputy's part. Returns when it should take the lead, or when the engine stops.
void UringEngine::watch() {
  Core& core = *core_;
  Monitor& monitor = core.host->monitor();
  std::uint64_t seen = core.turns.load(std::memory_order_relaxed);
  Duration look = kFirstLook;
  int quiet = 0;
  core.watch = Core::Watch::watching;
  while (!core.stopping.load(std::memory_order_relaxed)) {
    const std::uint32_t word = core.deputy_word.look();  // P2
    const Time until = core.watch == Core::Watch::asleep ? Time::max() : core.host->now() + look;
    monitor.unlock();
    for (Time next = until;;) {
      core.deputy_word.sleep_unless_changed(word, left_until(next));  // P3
      const std::uint64_t turns = core.turns.load(std::memory_order_relaxed);
      if (core.deputy_word.changed_since(word) || next == Time::max() || turns == seen) break;
      // The lead changes between other threads: nothing to do, so the monitor is not entered.
      seen = turns;
      quiet = 0;
      look = std::min(look * 2, kLastLook);
      next = core.host->now() + look;
    }
    monitor.lock();
    const std::uint64_t turns = core.turns.load(std::memory_order_relaxed);
    if (core.leader == nullptr && (core.take_now || turns == seen)) break;
    if (turns != seen) {
      seen = turns;
      quiet = 0;
    } else if (core.leader != nullptr && ++quiet >= kQuietLooks) {
      core.watch = Core::Watch::asleep;
    }
    core.take_now = false;
    look = kFirstLook;
  }
  core.take_now = false;
  core.watch = Core::Watch::nobody;
}

void UringEngine::wake_deputy(bool take_now) noexcept {
  Core& core = *core_;
  if (core.watch == Core::Watch::nobody) return;
  core.watch = Core::Watch::watching;
  core.take_now = take_now;
  Core::add_one(core.counts.wakes);
  core.deputy_word.raise(1);  // P1
}

}  // namespace lrpc::netrpc
