// The kernel of the simulated machine. Events from outside are in machine_outside.cpp.
#include "machine.h"

#include <algorithm>
#include <ranges>

namespace lrpc::simulated {

Thread::Pause Thread::sleep(std::uint64_t time) noexcept {
  wants_ = Wants::sleep;
  until_ = machine_.now() + time;
  return {};
}

Thread::Pause Thread::wait() noexcept { return wait_for(kForEver); }

Thread::Pause Thread::wait_for(std::uint64_t time) noexcept {
  wants_ = Wants::wait;
  until_ = time == kForEver ? kForEver : machine_.now() + time;
  return {};
}

Thread::Pause Thread::keep_to(std::uint64_t mask) noexcept {
  if ((mask & machine_.online()) != 0) mask_ = mask;
  wants_ = Wants::move;
  return {};
}

Thread& Machine::start(std::uint64_t mask, const std::function<Life(Thread&)>& life, Thread::Kind kind) {
  Thread& thread = *threads_.emplace_back(std::make_unique<Thread>(*this, mask, 0, kind));
  thread.life_ = std::make_unique<Life>(life(thread));
  thread.queued_ = now_;
  put(thread, place(thread));
  return thread;
}

unsigned Machine::running() const noexcept {
  return static_cast<unsigned>(std::ranges::count_if(threads_, [](const auto& thread) {
    return thread->state_ == Thread::State::running || thread->state_ == Thread::State::queued;
  }));
}

std::uint64_t Machine::online() const noexcept {
  std::uint64_t online = 0;
  for (unsigned i = 0; i < processors(); ++i) online |= std::uint64_t{processors_[i].online ? 1U : 0U} << i;
  return online;
}

bool Machine::is_idle(unsigned processor) const noexcept {
  const Processor& one = processors_[processor];
  return one.current == nullptr && std::ranges::none_of(one.queue, [&](const Thread* each) { return may_run(*each); });
}

/// Chooses a processor on which the thread may run: its last one if that is idle, else an idle one, else its last one.
/// A real-time thread stays on its last one unless another such thread runs there, since it preempts the others at
/// once.
unsigned Machine::place(const Thread& thread) const noexcept {
  const unsigned before = thread.processor_;
  if (may(thread, before) && is_idle(before)) return before;
  const Thread* const there = processors_[before].current;
  if (thread.realtime() && may(thread, before) && (there == nullptr || !there->realtime())) return before;
  unsigned best = before;
  for (unsigned i = 0; i < processors(); ++i) {
    if (!may(thread, i)) continue;
    if (is_idle(i)) return i;
    if (!may(thread, best)) best = i;
  }
  return best;
}

void Machine::put(Thread& thread, unsigned processor) {
  thread.processor_ = processor;
  if (const unsigned before = std::exchange(thread.had_on_, processor); before != processor) {
    // Keeps its lead or lag relative to the old processor, limited to one slice.
    const std::uint64_t then = processors_[before].had;
    thread.had_ = processors_[processor].had + std::clamp(thread.had_, then - costs_.slice, then + costs_.slice) - then;
  }
  if (thread.state_ != Thread::State::queued) thread.queued_ = now_;  // otherwise it was stolen, and waits since before
  thread.state_ = Thread::State::queued;
  processors_[processor].queue.push_back(&thread);
}

void Machine::wake(Thread& waker, Thread& thread) {
  if (thread.state_ != Thread::State::asleep || !thread.waits_) {
    thread.woken_ = true;
    return;
  }
  if (thread.until_ != kForEver) std::erase(sleepers_, &thread);
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
  if (thread.realtime() != running.realtime()) {
    if (thread.realtime()) processor.slice_ends = now_;
    return;
  }
  thread.had_ = std::max(thread.had_, running.had_ - std::min(running.had_, costs_.slice));
  if (thread.had_ + costs_.preempts >= running.had_) return;
  processor.slice_ends = now_;
}

/// Picks a thread of the queue that may run: a real-time one first, then the one that was charged least. The thread
/// that has just yielded is picked only if there is no other.
void Machine::next(Processor& processor, const Thread* yielded) {
  processor.current = nullptr;
  auto best = processor.queue.end();
  const auto rank = [&](const Thread* thread) {
    return std::tuple(!thread->realtime(), thread == yielded, thread->had_);
  };
  for (auto each = processor.queue.begin(); each != processor.queue.end(); ++each) {
    if (may_run(**each) && (best == processor.queue.end() || rank(*each) < rank(*best))) best = each;
  }
  if (best == processor.queue.end()) return;
  processor.current = *best;
  processor.queue.erase(best);
  processor.current->state_ = Thread::State::running;
  processor.had = std::max(processor.had, processor.current->had_);
  processor.current->longest_wait_ = std::max(processor.current->longest_wait_, now_ - processor.current->queued_);
  processor.busy_until = now_ + costs_.switched;
  processor.slice_ends = now_ + costs_.slice;
}

void Machine::switch_out(Processor& processor, Thread& thread) {
  ++thread.involuntary_;
  put(thread, thread.processor_);
  next(processor);
}

/// A thread that waits for another processor than this idle one, and may run here.
Thread* Machine::to_steal(unsigned idle) const noexcept {
  for (const Processor& other : processors_) {
    if (other.current == nullptr) continue;
    const auto found =
        std::ranges::find_if(other.queue, [&](const Thread* each) { return may(*each, idle) && may_run(*each); });
    if (found != other.queue.end()) return *found;
  }
  return nullptr;
}

void Machine::steal_for(unsigned idle) {
  Thread* const thread = to_steal(idle);
  if (thread == nullptr) return;
  std::erase(processors_[thread->processor_].queue, thread);
  put(*thread, idle);
}

/// Moves one thread from a processor with more runnable threads to one with fewer. A real-time thread counts as many.
/// If loads differ by only one, a thread moves in every eighth round, so that all get the same in the long run.
void Machine::balance() {
  constexpr std::size_t kRealtime = 8;
  constexpr unsigned kGoesRound = 8;
  const std::size_t difference = ++balances_ % kGoesRound == 0 ? 1 : 2;
  const auto load = [&](const Processor& processor) {
    const std::size_t current = processor.current == nullptr ? 0 : processor.current->realtime() ? kRealtime : 1;
    return processor.queue.size() + current;
  };
  const auto index = [&](const Processor& processor) { return static_cast<unsigned>(&processor - processors_.data()); };
  for (Processor& from : processors_) {
    for (Processor& to : processors_) {
      if (!to.online || load(to) + difference > load(from)) continue;
      const auto found = std::ranges::find_if(from.queue, [&](const Thread* each) { return may(*each, index(to)); });
      if (found == from.queue.end()) continue;
      Thread& thread = **found;
      from.queue.erase(found);
      return put(thread, index(to));
    }
  }
}

/// Whether a busy sibling slows this processor.
bool Machine::slowed(const Processor& processor) const noexcept {
  const auto sibling = static_cast<std::size_t>(&processor - processors_.data()) ^ 1U;
  return sibling < processors_.size() && processors_[sibling].current != nullptr &&
         processors_[sibling].frozen_until <= now_;
}

void Machine::step(Processor& processor) {
  if (processor.frozen_until > now_) {
    if (processor.current != nullptr && !costs_.steal_clock) ++processor.current->ran_;
    return;
  }
  if (!processor.online || processor.busy_until > now_) return;
  if (processor.current == nullptr) {
    const auto index = static_cast<unsigned>(&processor - processors_.data());
    if (is_idle(index)) steal_for(index);
    return next(processor);
  }
  Thread& thread = *processor.current;
  if (!may_run(thread)) return switch_out(processor, thread);
  if (!may(thread, thread.processor_)) {
    leave(thread, place(thread));
    return next(processor);
  }
  if (now_ >= processor.slice_ends && std::ranges::any_of(processor.queue, [&](const Thread* each) {
        return may_run(*each) && (each->realtime() || !thread.realtime());
      })) {
    return switch_out(processor, thread);
  }
  ++used_;
  ++thread.ran_;
  ++thread.had_;
  if (thread.kind_.group != nullptr) thread.kind_.group->used(1, now_);
  if (costs_.siblings && slowed(processor) && now_ % 5 >= 3) return;
  if (thread.left_ > 0 && --thread.left_ > 0) return;
  act(processor, thread);
}

/// Runs a thread up to its next co_await, which takes no time.
void Machine::act(Processor& processor, Thread& thread) {
  thread.wants_ = Thread::Wants::nothing;
  thread.life_->resume();
  switch (thread.wants_) {
    case Thread::Wants::nothing: acts_again_ = acts_again_ || thread.left_ <= 1; return;
    case Thread::Wants::yield:
      if (std::ranges::none_of(processor.queue, [&](const Thread* each) {
            return may_run(*each) && (each->realtime() || !thread.realtime());
          }))
        return;
      put(thread, thread.processor_);
      return next(processor, &thread);
    case Thread::Wants::wait:
      if (std::exchange(thread.woken_, false)) return;
      thread.waits_ = true;
      thread.state_ = Thread::State::asleep;
      if (thread.until_ != kForEver) sleepers_.push_back(&thread);
      return next(processor);
    case Thread::Wants::sleep:
      thread.waits_ = false;
      thread.state_ = Thread::State::asleep;
      sleepers_.push_back(&thread);
      return next(processor);
    case Thread::Wants::move:
      if (may(thread, thread.processor_)) return;
      leave(thread, place(thread));
      return next(processor);
  }
}

/// Sends a thread to another processor. It neither runs nor is in a queue now.
void Machine::leave(Thread& thread, unsigned processor) {
  thread.state_ = Thread::State::on_its_way;
  thread.until_ = now_ + costs_.moved;
  thread.processor_ = processor;
  sleepers_.push_back(&thread);
}

void Machine::begin_tick() {
  for (std::size_t i = 0; i < events_.size();) {
    if (events_[i].when > now_) {
      ++i;
      continue;
    }
    const std::function<void()> what = std::move(events_[i].what);
    events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i));
    what();  // may add events
  }
  std::erase_if(sleepers_, [&](Thread* thread) {
    // A timer belongs to its processor, and waits while that is frozen.
    const bool timer = thread->state_ == Thread::State::asleep;
    if (thread->until_ > now_ || (timer && processors_[thread->processor_].frozen_until > now_)) return false;
    arrive(*thread);
    return true;
  });
}

void Machine::run_for(std::uint64_t time) {
  for (const std::uint64_t end = now_ + time; now_ < end;) {
    acts_again_ = false;
    begin_tick();
    for (Processor& processor : processors_) step(processor);
    if (costs_.balanced != 0 && now_ - balanced_ >= costs_.balanced) {
      balanced_ = now_;
      balance();
    }
    ++now_;
    if (!acts_again_) pass(std::min(quiet(), end - now_));
  }
}

/// For how many ticks nothing happens except that threads work.
std::uint64_t Machine::quiet() const noexcept {
  std::uint64_t quiet = kForEver;
  for (const Processor& processor : processors_) {
    quiet = std::min(quiet, this->quiet(processor));
    if (quiet == 0) return 0;
  }
  const auto until = [&](std::uint64_t when) { quiet = std::min(quiet, when - std::min(when, now_)); };
  if (costs_.balanced != 0) until(balanced_ + costs_.balanced);
  for (const Thread* thread : sleepers_) until(thread->until_);
  for (const Event& event : events_) until(event.when);
  return quiet;
}

std::uint64_t Machine::quiet(const Processor& processor) const noexcept {
  if (processor.frozen_until > now_) return processor.frozen_until - now_;
  if (!processor.online) return kForEver;
  if (processor.busy_until > now_) return processor.busy_until - now_;
  std::uint64_t quiet = kForEver;
  for (const Thread* waits : processor.queue) {
    if (!may_run(*waits)) quiet = std::min(quiet, waits->kind_.group->stopped_until_ - now_);
  }
  if (processor.current == nullptr) {
    const auto index = static_cast<unsigned>(&processor - processors_.data());
    return !is_idle(index) || to_steal(index) != nullptr ? 0 : quiet;
  }
  const Thread& thread = *processor.current;
  if (!may_run(thread) || !may(thread, thread.processor_) || thread.left_ <= 1) return 0;
  if (costs_.siblings && slowed(processor)) return 0;
  quiet = std::min(quiet, thread.left_ - 1);
  if (!processor.queue.empty()) quiet = std::min(quiet, processor.slice_ends - std::min(processor.slice_ends, now_));
  if (thread.kind_.group != nullptr) quiet = std::min(quiet, thread.kind_.group->left(now_) / processors());
  return quiet;
}

void Machine::pass(std::uint64_t time) noexcept {
  if (time == 0) return;
  for (Processor& processor : processors_) {
    Thread* const thread = processor.current;
    if (thread == nullptr || processor.busy_until > now_) continue;
    if (processor.frozen_until > now_) {
      if (!costs_.steal_clock) thread->ran_ += time;
      continue;
    }
    used_ += time;
    thread->ran_ += time;
    thread->had_ += time;
    thread->left_ -= time;
    if (thread->kind_.group != nullptr) thread->kind_.group->used(time, now_);
  }
  now_ += time;
}

}  // namespace lrpc::simulated
