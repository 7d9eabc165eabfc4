// Events from outside: what host and administrator do to the simulated machine.
#include <algorithm>
#include <utility>

#include "machine.h"

namespace lrpc::simulated {

void Group::used(std::uint64_t time, std::uint64_t now) noexcept {
  if (quota_ == 0) return;
  if (now / period_ != this_period_) used_ = 0;
  this_period_ = now / period_;
  used_ += time;
  if (used_ >= quota_) stopped_until_ = std::max(stopped_until_, (this_period_ + 1) * period_);
}

std::uint64_t Group::left(std::uint64_t now) const noexcept {
  if (quota_ == 0) return ~std::uint64_t{0};
  if (now / period_ != this_period_) return 0;
  const std::uint64_t left = quota_ - std::min(quota_, used_ + 1);
  return std::min(left, (this_period_ + 1) * period_ - now - 1);
}

void Machine::after(std::uint64_t time, std::function<void()> what) {
  events_.push_back({now_ + time, std::move(what)});
}

void Machine::freeze(unsigned processor, std::uint64_t time) {
  Processor& frozen = processors_[processor];
  frozen.frozen_until = std::max(frozen.frozen_until, now_ + time);
  if (!costs_.steal_clock) return;
  // Known steal time is not charged to time slices.
  frozen.slice_ends += time;
  if (frozen.busy_until > now_) frozen.busy_until += time;
}

void Machine::stop(Group& group, std::uint64_t time) {
  group.stopped_until_ = std::max(group.stopped_until_, now_ + time);
}

void Machine::set_online(unsigned processor, bool online) {
  Processor& changed = processors_[processor];
  changed.online = online;
  if (online) return;
  for (const auto& thread : threads_) {
    if ((thread->mask_ & this->online()) == 0) thread->mask_ = all();
  }
  std::vector<Thread*> there = std::exchange(changed.queue, {});
  if (changed.current != nullptr) there.push_back(std::exchange(changed.current, nullptr));
  for (Thread* thread : there) leave(*thread, place(*thread));
}

/// A queued thread leaves at once, a running one at the next step of its processor, a sleeping one when it arrives.
void Machine::confine(Thread& thread, std::uint64_t mask) {
  if ((mask & online()) == 0) return;
  thread.mask_ = mask;
  if (thread.state_ != Thread::State::queued || may(thread, thread.processor_)) return;
  std::erase(processors_[thread.processor_].queue, &thread);
  leave(thread, place(thread));
}

}  // namespace lrpc::simulated
