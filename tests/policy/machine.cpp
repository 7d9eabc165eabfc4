#include "machine.h"

#include <algorithm>

namespace lrpc::simulated {
namespace {

constexpr std::uint64_t kForEver = ~std::uint64_t{0};

}  // namespace

Thread::Pause Thread::sleep(std::uint64_t time) noexcept {
  wants_ = Wants::sleep;
  until_ = machine_.now() + time;
  return {};
}

Thread& Machine::start(std::uint64_t mask, const std::function<Life(Thread&)>& life) {
  Thread& thread = *threads_.emplace_back(std::make_unique<Thread>(*this, mask, 0));
  thread.life_ = std::make_unique<Life>(life(thread));
  thread.queued_ = now_;
  put(thread, place(thread));
  return thread;
}

/// Where it was if that is idle, else where it is idle, else where it was; but only where it may.
unsigned Machine::place(const Thread& thread) const noexcept {
  if (may(thread, thread.processor_) && is_idle(thread.processor_)) return thread.processor_;
  unsigned best = thread.processor_;
  for (unsigned i = 0; i < processors(); ++i) {
    if (!may(thread, i)) continue;
    if (is_idle(i)) return i;
    if (!may(thread, best)) best = i;
  }
  return best;
}

void Machine::put(Thread& thread, unsigned processor) {
  thread.processor_ = processor;
  if (thread.state_ != Thread::State::queued) thread.queued_ = now_;  // else it is stolen, and waits on
  thread.state_ = Thread::State::queued;
  processors_[processor].queue.push_back(&thread);
}

void Machine::wake(Thread& waker, Thread& thread) {
  if (thread.state_ != Thread::State::asleep || thread.until_ != kForEver) {
    thread.woken_ = true;
    return;
  }
  const unsigned processor = place(thread);
  thread.state_ = Thread::State::on_its_way;
  thread.until_ = now_ + (processor == waker.processor_ ? costs_.woken_near : costs_.woken_far);
  thread.processor_ = processor;
  sleepers_.push_back(&thread);
}

void Machine::arrive(Thread& thread) {
  const bool was_asleep = thread.state_ == Thread::State::asleep;
  put(thread, was_asleep || !may(thread, thread.processor_) ? place(thread) : thread.processor_);
  Processor& processor = processors_[thread.processor_];
  if (processor.current == nullptr) return;
  Thread& running = *processor.current;
  thread.had_ = std::max(thread.had_, running.had_ - std::min(running.had_, costs_.slice));
  if (thread.had_ + costs_.preempts >= running.had_) return;
  processor.slice_ends = now_;
}

/// The one in the queue that has had least, if any; not the one that has just yielded, if there is another.
void Machine::next(Processor& processor, const Thread* yielded) {
  processor.current = nullptr;
  if (processor.queue.empty()) return;
  const auto least = std::ranges::min_element(
      processor.queue, {}, [&](const Thread* thread) { return std::pair(thread == yielded, thread->had_); });
  processor.current = *least;
  processor.queue.erase(least);
  processor.current->state_ = Thread::State::running;
  processor.current->longest_wait_ = std::max(processor.current->longest_wait_, now_ - processor.current->queued_);
  processor.busy_until = now_ + costs_.switched;
  processor.slice_ends = now_ + costs_.slice;
}

void Machine::steal_for(unsigned idle) {
  for (Processor& other : processors_) {
    const auto found = std::ranges::find_if(other.queue, [&](const Thread* thread) { return may(*thread, idle); });
    if (found == other.queue.end() || other.current == nullptr) continue;
    Thread& thread = **found;
    other.queue.erase(found);
    put(thread, idle);
    return;
  }
}

void Machine::step(Processor& processor) {
  if (processor.busy_until > now_) return;
  if (processor.current == nullptr) {
    if (processor.queue.empty()) steal_for(static_cast<unsigned>(&processor - processors_.data()));
    return next(processor);
  }
  Thread& thread = *processor.current;
  if (now_ >= processor.slice_ends && !processor.queue.empty()) {
    ++thread.involuntary_;
    put(thread, thread.processor_);
    return next(processor);
  }
  ++thread.ran_;
  ++thread.had_;
  if (thread.left_ > 0 && --thread.left_ > 0) return;
  // What it does until it next says co_await takes no time.
  thread.wants_ = Thread::Wants::nothing;
  thread.life_->resume();
  switch (thread.wants_) {
    case Thread::Wants::nothing: return;
    case Thread::Wants::yield:
      if (processor.queue.empty()) return;
      put(thread, thread.processor_);
      return next(processor, &thread);
    case Thread::Wants::wait:
      if (std::exchange(thread.woken_, false)) return;
      thread.until_ = kForEver;
      thread.state_ = Thread::State::asleep;
      return next(processor);
    case Thread::Wants::sleep:
      thread.state_ = Thread::State::asleep;
      sleepers_.push_back(&thread);
      return next(processor);
    case Thread::Wants::move:
      if (may(thread, thread.processor_)) return;
      thread.state_ = Thread::State::on_its_way;
      thread.until_ = now_ + costs_.moved;
      thread.processor_ = place(thread);
      sleepers_.push_back(&thread);
      return next(processor);
  }
}

void Machine::run_for(std::uint64_t time) {
  for (const std::uint64_t end = now_ + time; now_ < end; ++now_) {
    std::erase_if(sleepers_, [&](Thread* thread) {
      if (thread->until_ > now_) return false;
      arrive(*thread);
      return true;
    });
    for (Processor& processor : processors_) step(processor);
  }
}

}  // namespace lrpc::simulated
