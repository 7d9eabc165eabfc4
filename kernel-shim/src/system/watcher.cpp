#include "lrpc/detail/shim/system/watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/fork.h"
#include "lrpc/detail/shim/system/lack.h"
#include "lrpc/detail/shim/system/thread.h"
#include "lrpc/detail/shim/turns.h"

namespace lrpc::shim {
namespace {

using Clock = std::chrono::steady_clock;

/// Pause before a retry after a lack of memory.
constexpr std::chrono::milliseconds kMemoryPause{1};

/// Per epoll_wait(2). Further events are reported by the next call.
constexpr std::size_t kMostEvents = 1024;
/// How long turns are taken before the next epoll_wait(2), which costs as much as some turns.
constexpr std::chrono::milliseconds kTurns{1};

constexpr bool is_end(std::uint32_t events) noexcept { return (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0; }

}  // namespace

struct Watcher::Task::Work {
  using Queue = std::multimap<Clock::time_point, std::shared_ptr<Work>>;

  explicit Work(std::function<void()> function) : run(std::move(function)) {
    Queue made;
    place = made.extract(made.emplace(Clock::time_point(), nullptr));
  }

  const std::function<void()> run;
  // Under the watcher's lock.
  Queue::node_type place;  ///< Its node of the queue, while it is not posted.
  Queue::iterator posted;  ///< Its position in the queue, while it is posted.
};

struct Watcher::Impl {
  using Work = Task::Work;
  struct Watch {
    int fd;
    Callback callback;
    Id id = 0;
    std::uint32_t news = 0;  ///< The events with which it waits for its turn.
    bool ends_in_turn = false;
  };
  using Turns = shim::Turns<User, std::shared_ptr<Watch>>;
  using Watches = std::map<Id, Turns::Place>;

  explicit Impl(const char* name) : name_(name), owner_(this_process()) { know_of_forks(); }

  Status start_locked();
  void run();
  void wake() const { (void)eventfd_write(wakeup_.get(), 1); }
  int run_due_work(std::unique_lock<std::mutex>& lock);
  void post_locked(const std::shared_ptr<Work>& work, Clock::time_point when) noexcept;
  void add_locked(const std::shared_ptr<Watch>& watch, User user);
  std::shared_ptr<Watch> remove_locked(Watches::iterator found) noexcept;
  void sort_out(std::unique_lock<std::mutex>& lock, std::span<const epoll_event> events);
  void take_turns(std::unique_lock<std::mutex>& lock);
  void dispatch(std::unique_lock<std::mutex>& lock, Turns::Place place, std::uint32_t events);

  static constexpr Id kWakeupId = 0;

  const std::string name_;
  const ProcessNumber owner_;
  std::mutex mutex_;
  std::condition_variable idle_;  ///< Signalled when the running callback has ended.
  UniqueFd epoll_;
  UniqueFd wakeup_;
  Watches watches_;
  Turns turns_;
  Work::Queue work_;
  Id next_id_ = 1;
  Id running_ = 0;  ///< The watch whose callback runs now.
  bool stop_ = false;
  Thread thread_;
  std::atomic<std::thread::id> thread_id_{};  ///< Set by the thread itself.
};

Status Watcher::Impl::start_locked() {
  if (thread_.running()) return {};
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return system_error("epoll_create1", errno);
  wakeup_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wakeup_) return system_error("eventfd", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeupId;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event) != 0) return epoll_ctl_error(errno);
  return thread_.start<&Impl::run>({.name = name_.c_str()}, this);
}

int Watcher::Impl::run_due_work(std::unique_lock<std::mutex>& lock) {
  while (!work_.empty()) {
    const auto now = Clock::now();
    auto first = work_.begin();
    if (first->first > now) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(first->first - now);
      return static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
    }
    Work::Queue::node_type place = work_.extract(first);
    std::shared_ptr<Work> work = std::move(place.mapped());
    work->place = std::move(place);
    lock.unlock();
    try {
      work->run();
    } catch (const std::bad_alloc&) {
      lock.lock();
      post_locked(work, Clock::now() + kMemoryPause);
      lock.unlock();
    }
    work = nullptr;  // what it holds may use this watcher in its destructor
    lock.lock();
  }
  return -1;
}

void Watcher::Impl::post_locked(const std::shared_ptr<Work>& work, Clock::time_point when) noexcept {
  if (work->place.empty()) {
    if (work->posted->first <= when) return;
    work->place = work_.extract(work->posted);
  }
  work->place.key() = when;
  work->place.mapped() = work;
  work->posted = work_.insert(std::move(work->place));
  wake();
}

// ---- turns ----

/// Throws std::bad_alloc; then nothing has changed.
void Watcher::Impl::add_locked(const std::shared_ptr<Watch>& watch, User user) {
  Watches made;
  Turns::Place& place = made[watch->id];
  place = turns_.join(user, watch);
  watches_.merge(made);
}

std::shared_ptr<Watcher::Impl::Watch> Watcher::Impl::remove_locked(Watches::iterator found) noexcept {
  const auto place = found->second;
  watches_.erase(found);
  return turns_.leave(place);
}

/// Ends come first (but for For::messages): a peer may end one thing in order to have room for the next, and the kernel
/// reports them in any order.
void Watcher::Impl::sort_out(std::unique_lock<std::mutex>& lock, std::span<const epoll_event> events) {
  for (const epoll_event& event : events) {
    if (stop_) return;
    const Id id = event.data.u64;  // a copy: an epoll_event is packed, and this is misaligned there
    if (id == kWakeupId) {
      eventfd_t count = 0;
      (void)eventfd_read(wakeup_.get(), &count);
      continue;
    }
    const auto found = watches_.find(id);
    if (found == watches_.end()) continue;  // unwatched after epoll_wait had returned it
    if (is_end(event.events) && !found->second->member->ends_in_turn) {
      dispatch(lock, found->second, event.events);
      (void)run_due_work(lock);  // not only after all ends: there may be many
    } else {
      found->second->member->news = event.events;
      turns_.wait(found->second);
    }
  }
}

/// Dispatches one event of each user in turn, until nobody waits or kTurns is over.
void Watcher::Impl::take_turns(std::unique_lock<std::mutex>& lock) {
  if (!turns_.any()) return;
  const auto until = Clock::now() + kTurns;
  do {
    const auto next = turns_.take();
    dispatch(lock, next, next->member->news);
  } while (turns_.any() && !stop_ && Clock::now() < until);
}

void Watcher::Impl::dispatch(std::unique_lock<std::mutex>& lock, Turns::Place place, std::uint32_t events) {
  turns_.rest(place);
  auto watch = place->member;
  running_ = watch->id;
  lock.unlock();
  try {
    watch->callback({.id = watch->id, .readable = (events & EPOLLIN) != 0, .hung_up = is_end(events)});
  } catch (const std::bad_alloc&) {
    std::this_thread::sleep_for(kMemoryPause);
  }
  watch.reset();  // the last reference, if it was unwatched: what it holds may use this watcher in its destructor
  lock.lock();
  running_ = 0;
  idle_.notify_all();
}

void Watcher::Impl::run() {
  thread_id_.store(std::this_thread::get_id());
  std::array<epoll_event, kMostEvents> events;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    int timeout = run_due_work(lock);
    if (stop_) break;
    if (turns_.any()) timeout = 0;
    lock.unlock();
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    lock.lock();
    sort_out(lock, std::span(events).first(static_cast<std::size_t>(std::max(count, 0))));
    if (!stop_) take_turns(lock);
  }
}

Watcher::Watcher(const char* thread_name) : impl_(std::make_unique<Impl>(thread_name)) {}

Watcher::~Watcher() {
  if (inert()) {
    // A fork child: it does not have the thread, and the mutex may be locked by a thread that it does not have either.
    (void)impl_.release();
    return;
  }
  {
    std::lock_guard lock(impl_->mutex_);
    impl_->stop_ = true;
    if (impl_->thread_.running()) impl_->wake();
  }
  impl_->thread_.join();
  for (const auto& [id, place] : impl_->watches_) keep_in_fork_children(place->member->fd);
}

Status Watcher::start() {
  if (inert()) return Error{Errc::not_supported, "bindings do not survive fork"};
  std::lock_guard lock(impl_->mutex_);
  return impl_->start_locked();
}

Result<Watcher::Id> Watcher::watch(int fd, Callback callback, User user, For what) {
  if (inert()) return Error{Errc::not_supported, "bindings do not survive fork"};
  const auto made = std::make_shared<Impl::Watch>(Impl::Watch{fd, std::move(callback)});  // outlives the lock
  std::lock_guard lock(impl_->mutex_);
  if (Status started = impl_->start_locked(); !started) return started.error();
  const Id id = impl_->next_id_++;
  made->id = id;
  made->ends_in_turn = what == For::messages;
  drop_in_fork_children(fd);
  int err = ENOMEM;
  try {
    impl_->add_locked(made, user);
    epoll_event event{};
    event.events = what == For::end ? 0 : EPOLLIN | EPOLLRDHUP;  // EPOLLHUP in any case
    event.data.u64 = id;
    err = epoll_ctl(impl_->epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
  } catch (const std::bad_alloc&) {
  }
  if (err != 0) {
    if (const auto found = impl_->watches_.find(id); found != impl_->watches_.end()) impl_->remove_locked(found);
    keep_in_fork_children(fd);
    return epoll_ctl_error(err);
  }
  return id;
}

void Watcher::unwatch(Id id) {
  if (id == 0 || inert()) return;
  std::shared_ptr<Impl::Watch> ended;  // destroyed after the unlock: its destructor may use this watcher
  std::unique_lock lock(impl_->mutex_);
  if (const auto found = impl_->watches_.find(id); found != impl_->watches_.end()) {
    ended = impl_->remove_locked(found);
    (void)epoll_ctl(impl_->epoll_.get(), EPOLL_CTL_DEL, ended->fd, nullptr);
    keep_in_fork_children(ended->fd);
  }
  // Even if it is gone already: its callback may have unwatched itself and still be running.
  if (!on_watcher_thread()) impl_->idle_.wait(lock, [&] { return impl_->running_ != id; });
}

Watcher::Task::Task(std::function<void()> work) : work_(std::make_shared<Work>(std::move(work))) {}

bool Watcher::post(const Task& task, std::uint32_t delay_ms) noexcept try {
  if (inert() || task.work_ == nullptr) return false;
  std::lock_guard lock(impl_->mutex_);
  if (!impl_->start_locked()) return false;
  impl_->post_locked(task.work_, Clock::now() + std::chrono::milliseconds(delay_ms));
  return true;
} catch (const std::bad_alloc&) {  // for the error text of start_locked()
  return false;
}

bool Watcher::on_watcher_thread() const noexcept { return impl_->thread_id_.load() == std::this_thread::get_id(); }

bool Watcher::inert() const noexcept { return impl_->owner_ != this_process(); }

}  // namespace lrpc::shim
