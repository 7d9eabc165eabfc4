#include "netrpc/protocols/select/channel_pool.h"

#include <algorithm>

#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

ChannelPool::ChannelPool(Protocol& high, Protocol& below, ParticipantSet participants, std::size_t channels,
                         std::size_t queue, Unwrap unwrap, std::uint64_t& sent)
    : high_(high),
      below_(below),
      participants_(std::move(participants)),
      limit_(std::max<std::size_t>(channels, 1)),
      queue_(queue),
      unwrap_(unwrap),
      sent_(sent),
      timer_([this] { expired(); }) {
  slots_.reserve(limit_);
}

Status ChannelPool::open_channel() {
  Result<SessionRef> channel = below_.open(high_, participants_);
  if (!channel) return channel.error();
  Slot& slot = *slots_.emplace_back(std::make_unique<Slot>(*this));
  slot.channel = std::move(*channel);
  control::Request ask = control::FreedByCancel{};
  slot.freed_by_cancel = slot.channel->control(ask) == Errc::ok;
  slot.next_free = std::exchange(free_, &slot);  // meanwhile another one may have become free
  return {};
}

Errc ChannelPool::control(control::Request& request) noexcept {
  if (slots_.empty()) return Errc::not_supported;
  return slots_.front()->channel->control(request);
}

void ChannelPool::call(Message&& request, Transaction& transaction, Duration timeout) noexcept {
  if (timeout <= Duration::zero()) return transaction.completed(Errc::call_aborted, {});
  Time deadline = Time::max();
  if (!(timeout == kNoLimit)) {
    const Time now = high_.host().now();
    deadline = deadline_after(now, timeout);
    timer_.run_by(high_.host().events(), now, deadline);
  }
  Errc outcome = Errc::ok;
  // Calls that wait already come first.
  Slot* const slot = waiting_.empty() ? take_slot(outcome) : nullptr;
  if (slot != nullptr) [[likely]]
    return start(*slot, std::move(request), transaction, deadline);
  if (outcome == Errc::ok && waiting_.size() >= queue_ + (slots_.size() - in_use_)) outcome = Errc::limit_reached;
  if (outcome != Errc::ok) return transaction.completed(outcome, {});
  transaction.deadline = deadline;
  waiting_.add(transaction, std::move(request));
}

/// Null with Errc::ok: all are in use.
ChannelPool::Slot* ChannelPool::take_slot(Errc& outcome) noexcept {
  if (free_ == nullptr) [[unlikely]] {
    if (slots_.size() == limit_) return nullptr;
    const Errc opened = or_limit_reached([this] { return open_channel(); }).code();
    if (opened != Errc::ok) {
      // Calls can wait for the channels that are open; without any, the call fails.
      if (slots_.empty()) outcome = opened;
      return nullptr;
    }
  }
  Slot* const slot = std::exchange(free_, free_->next_free);
  ++in_use_;
  return slot;
}

void ChannelPool::free_slot(Slot& slot) noexcept {
  --in_use_;
  slot.next_free = std::exchange(free_, &slot);
}

/// The slot's user does not wait any more. Returns the user.
Transaction* ChannelPool::abandon(Slot& slot) noexcept {
  if (slot.freed_by_cancel) {
    slot.channel->cancel(slot);
    free_slot(slot);
  }
  return std::exchange(slot.user, nullptr);
}

void ChannelPool::start(Slot& slot, Message&& request, Transaction& transaction, Time deadline) noexcept {
  slot.user = &transaction;
  slot.user_deadline = deadline;
  slot.starting = true;
  ++sent_;
  ++entered_;
  // No timeout: the pool ends the call at its deadline, and the channel stays in use until it completes the call.
  slot.channel->call(std::move(request), slot, kNoLimit);
  slot.starting = false;
  --entered_;
}

void ChannelPool::completed(Slot& slot, Errc outcome, Message&& reply) noexcept {
  if (std::exchange(slot.starting, false) && outcome != Errc::ok) --sent_;  // the channel has refused it
  Transaction* const user = std::exchange(slot.user, nullptr);
  free_slot(slot);
  ++entered_;
  // Before waiting calls are served: one of those may be completed at once, and its user may cancel this call. This
  // call must not be completed after that.
  if (user != nullptr) {
    outcome = unwrapped(outcome, reply);
    user->completed(outcome, std::move(reply));  // may start the next call
  }
  if (!waiting_.empty()) [[unlikely]]
    serve_waiting();
  --entered_;
}

void ChannelPool::serve_waiting() noexcept {
  if (serving_) return;  // a call was completed before call() returned: the loop that is running goes on
  serving_ = true;
  ++entered_;
  while (!waiting_.empty()) {
    if (waiting_.first().deadline <= high_.host().now()) {  // the timer is late
      Transaction& late = waiting_.take_first();
      late.waiting_request.clear();
      late.completed(Errc::call_aborted, {});
      continue;
    }
    Errc outcome = Errc::ok;
    Slot* const slot = take_slot(outcome);
    if (slot == nullptr) break;
    if (waiting_.empty()) {  // those that waited were cancelled while a channel was opened for them
      free_slot(*slot);
      break;
    }
    Transaction& next = waiting_.take_first();
    start(*slot, std::move(next.waiting_request), next, next.deadline);
  }
  --entered_;
  serving_ = false;
}

void ChannelPool::cancel(Transaction& transaction) noexcept {
  for (const auto& slot : slots_) {
    if (slot->user != &transaction) continue;
    (void)abandon(*slot);
    if (free_ == nullptr || waiting_.empty()) return;
    // Not here: a call that is started may be completed at once, and its user may cancel again.
    const Time now = high_.host().now();
    return timer_.run_by(high_.host().events(), now, now);
  }
  waiting_.drop(transaction);
}

Transaction* ChannelPool::take_expired(Time now) noexcept {
  for (const auto& slot : slots_)
    if (slot->user != nullptr && slot->user_deadline <= now) return abandon(*slot);
  return waiting_.drop_expired(now);
}

void ChannelPool::expired() noexcept {
  ++entered_;
  const Time now = high_.host().now();
  // One at a time: completed() may cancel others.
  while (Transaction* const transaction = take_expired(now)) transaction->completed(Errc::call_aborted, {});
  serve_waiting();
  Time next = waiting_.earliest_deadline();
  for (const auto& slot : slots_)
    if (slot->user != nullptr) next = std::min(next, slot->user_deadline);
  timer_.run_by(high_.host().events(), high_.host().now(), next);
  --entered_;
}

}  // namespace lrpc::netrpc
