#include "lookup/shared_watches.h"

#include <algorithm>

namespace lrpc::directory {

using Clock = std::chrono::steady_clock;

/// One thread's part in the watch of a prefix; released by the destructor. Holds the lock until begin().
class SharedWatches::Waiting {
 public:
  Waiting(SharedWatches& all, const std::string& prefix) : all_(all), prefix_(prefix), lock_(all.mutex_) {
    auto found = all_.watches_.find(prefix_);
    if (found == all_.watches_.end()) found = all_.watches_.emplace(prefix_, std::make_shared<Watch>()).first;
    watch_ = found->second;
    ++watch_->waiting;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (!lock_.owns_lock()) lock_.lock();
    if (watching_) watch_->watched = false;
    if (--watch_->waiting == 0 && !watch_->over) all_.watches_.erase(prefix_);
    all_.changed_.notify_all();
  }
  [[nodiscard]] Watch& watch() const noexcept { return *watch_; }
  /// Waits until no thread watches, or the watch is over. False: `until` has passed.
  bool for_others(Time until) {
    return all_.changed_.wait_until(lock_, until, [&] { return watch_->over || !watch_->watched; });
  }
  /// From here on this thread watches.
  void begin() {
    watching_ = watch_->watched = true;
    lock_.unlock();
  }
  /// Ends the watch for all threads that wait for the prefix. A thread that comes later begins a new watch.
  void end(const Result<bool>& outcome) {
    lock_.lock();
    watch_->outcome = outcome;
    watch_->over = true;
    all_.watches_.erase(prefix_);
  }

 private:
  SharedWatches& all_;
  const std::string& prefix_;
  std::unique_lock<std::mutex> lock_;
  std::shared_ptr<Watch> watch_;
  bool watching_ = false;
};

/// Watches from the revision of the answer on: etcd reports at once what has happened since. So nothing is missed, not
/// even between two threads that watch one after the other.
Result<bool> SharedWatches::watch(const std::string& prefix, std::int64_t revision, Time until,
                                  const std::atomic<bool>& stop) {
  bool written = false;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  const Status watched = etcd_.watch(
      prefix, revision + 1, left,
      [&](const Changes& changes) {
        written = std::ranges::any_of(changes.changes, [](const Change& one) { return !one.removed; });
        return !written;
      },
      stop);
  if (!watched) return watched.error();
  return written;
}

Result<bool> SharedWatches::wait(const std::string& prefix, std::int64_t revision, std::chrono::milliseconds wait,
                                 const std::function<bool()>& may_watch, const std::atomic<bool>& stop) {
  const Time until = Clock::now() + wait;
  Waiting waiting(*this, prefix);
  if (!waiting.for_others(until)) return false;
  if (waiting.watch().over) return waiting.watch().outcome;
  if (stop.load(std::memory_order_relaxed) || Clock::now() >= until || !may_watch()) return false;
  waiting.begin();
  auto outcome = watch(prefix, revision, until, stop);
  if (outcome ? *outcome : Clock::now() < until) {
    waiting.end(outcome);
    return outcome;
  }
  return false;  // an error after this thread's time may result from that time: let another thread continue
}

std::size_t SharedWatches::waiting() {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const auto& [prefix, watch] : watches_) all += watch->waiting;
  return all;
}

}  // namespace lrpc::directory
