#include "workers.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace lrpc::netd {

bool Workers::put(Command& command) noexcept {
  const std::lock_guard lock(mutex_);
  if (stopping_) return false;
  try {
    if (!turns_.add(command)) return false;
  } catch (...) {
    return false;
  }
  one_more_locked();
  if (!threads_.empty()) return true;
  command = turns_.next();
  turns_.done(command.from.host);
  return false;
}

void Workers::put_rebooted(Rebooted host) noexcept {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  const auto known = std::ranges::find(hosts_, host.host, &Rebooted::host);
  if (known != hosts_.end()) {  // the last time counts
    known->last = host.last;
    return;
  }
  // Only an attacker can name so many hosts: their bindings end by their silence.
  if (hosts_.size() >= kRebooted) return;
  try {
    hosts_.push_back(host);
  } catch (...) {
    return;
  }
  one_more_locked();
}

void Workers::one_more_locked() noexcept {
  if (hosts_.empty() && !turns_.any()) return;
  if (idle_ < turns_.waiting() + hosts_.size() && threads_.size() < limit_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (...) {  // the threads that there are do it later
    }
  }
  wake_.notify_one();
}

void Workers::work() noexcept {
  ::pthread_setname_np(::pthread_self(), "lrpc-worker");  // else it has the name of its creator
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return stopping_ || turns_.any() || !hosts_.empty(); });
    --idle_;
    if (stopping_) return;
    if (!hosts_.empty()) {
      const Rebooted host = hosts_.front();
      hosts_.pop_front();
      lock.unlock();
      rebooted_(host);
      lock.lock();
      continue;
    }
    Command command = turns_.next();
    const netpath::HostAddress from = command.from.host;
    one_more_locked();  // a command that has ended may let more than one begin
    lock.unlock();
    serve_(std::move(command));
    lock.lock();
    turns_.done(from);
  }
}

void Workers::stop() noexcept {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads = std::move(threads_);
    threads_.clear();
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace lrpc::netd
