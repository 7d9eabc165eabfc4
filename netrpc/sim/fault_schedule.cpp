#include "netrpc/sim/fault_schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace lrpc::netrpc {

namespace {
constexpr Time kNever = Time::max();
}

void FaultSchedule::start() {
  started_ = true;
  boots_.assign(world_.hosts(), kNever);
  next(crash_, options_.crash_every);
  next(pause_, options_.pause_every);
  next(part_, options_.partition_every);
  next(drift_, options_.drift_every);
}

void FaultSchedule::stop() {
  started_ = false;
  for (Event* event : {&crash_, &boot_, &pause_, &part_, &heal_, &drift_})
    if (event->waiting()) world_.cancel(*event);
  world_.heal();
  for (std::size_t i = 0; i < world_.hosts(); ++i) world_.host(i).boot();
}

void FaultSchedule::next(Event& event, Duration every) {
  if (!started_ || every.count() <= 0) return;
  world_.schedule(event, Duration(world_.random() % static_cast<std::uint64_t>(2 * every.count()) + 1));
}

Duration FaultSchedule::length(Duration longest) {
  const auto most = static_cast<std::uint64_t>(longest.count());
  return Duration(most / 100 + world_.random() % (most - most / 100 + 1));
}

void FaultSchedule::crash() {
  next(crash_, options_.crash_every);
  SimHost& host = any_host();
  if (!host.can_crash()) return;
  ++crashes_;
  host.crash();
  boots_[host.index()] = world_.now() + length(options_.longest_down);
  boot();
}

/// Boots the hosts that are due, and waits for the next one.
void FaultSchedule::boot() {
  Time first = kNever;
  for (std::size_t i = 0; i < boots_.size(); ++i) {
    if (boots_[i] <= world_.now()) {
      boots_[i] = kNever;
      world_.host(i).boot();
    }
    first = std::min(first, boots_[i]);
  }
  if (first != kNever) world_.schedule(boot_, first - world_.now());
}

void FaultSchedule::pause() {
  next(pause_, options_.pause_every);
  ++pauses_;
  any_host().pause(length(options_.longest_pause));
}

void FaultSchedule::part() {
  next(part_, options_.partition_every);
  if (heal_.waiting()) return;  // one at a time
  ++partitions_;
  const auto groups = static_cast<std::uint32_t>(2 + world_.random() % 2);
  if (world_.traced()) world_.note(fmt::format("the network falls into {} parts", groups));
  for (std::size_t i = 0; i < world_.hosts(); ++i)
    world_.set_group(world_.host(i), static_cast<std::uint32_t>(world_.random() % groups));
  world_.schedule(heal_, length(options_.longest_partition));
}

void FaultSchedule::heal() {
  if (world_.traced()) world_.note("the network is whole again");
  world_.heal();
}

void FaultSchedule::drift() {
  next(drift_, options_.drift_every);
  const auto range = 2 * static_cast<std::uint64_t>(options_.largest_drift) + 1;
  any_host().set_drift(static_cast<std::int32_t>(world_.random() % range) - options_.largest_drift);
}

}  // namespace lrpc::netrpc
