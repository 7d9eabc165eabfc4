#include "aside.h"

#include <linux/close_range.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <semaphore>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/binder/closing_again.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "nursery.h"

namespace lrpc::shim {
namespace {

/// How many descriptors can wait to be closed without memory; fewer if the process can have fewer in all.
constexpr std::size_t kMostWithoutMemory = std::size_t{4} * kMostToCloseOfAll;

/// The process's descriptor limit, but at most `most`.
std::size_t most_descriptors(std::size_t most) noexcept { return std::min<std::uint64_t>(descriptor_limit(), most); }

/// The user of each thread that is held up.
class WaitingThreads {
 public:
  WaitingThreads() { of_users_.reserve(kMostAtOnce); }
  [[nodiscard]] bool has_none(uid_t user) const noexcept { return std::ranges::count(of_users_, user) == 0; }
  [[nodiscard]] bool room_for(uid_t user) const noexcept {
    return has_none(user) || (of_users_.size() < kMostAside && std::ranges::count(of_users_, user) < kMostAsideOfOne);
  }
  void add(uid_t user) { of_users_.push_back(user); }
  void remove(uid_t user) noexcept {
    *std::ranges::find(of_users_, user) = of_users_.back();
    of_users_.pop_back();
  }

 private:
  static constexpr std::size_t kMostAtOnce = 1024;  ///< So many can be added without memory; rarely there are more.
  std::vector<uid_t> of_users_;
};

struct ToClose {
  Stranger stranger;
  UniqueFd fd;
  bool surplus = false;  ///< To be closed by the end of a thread.
};

struct Closing;

struct Aside {
  std::mutex mutex;
  WaitingThreads closers;
  WaitingThreads porters;
  std::vector<ToClose> waiting;    ///< Reserved from the beginning: there may be no memory later.
  std::condition_variable closed;  ///< Signalled when a descriptor is closed, and when a porter or the clearing ends.
  Nursery nursery;
  const std::size_t most = most_descriptors(std::size_t{kPartToClose} * kMostToCloseOfAll) / kPartToClose;
  std::vector<const ClosingAgain*> again;  ///< All of them are asked to try again: any one may be busy.
  // Written under the lock.
  std::atomic<bool> clearing = false;                ///< A thread is clearing the surplus.
  std::atomic<bool> stalled = false;                 ///< Something waits because no thread could be started.
  std::chrono::steady_clock::time_point not_before;  ///< While stalled: when to try to start threads again.

  Aside() { waiting.reserve(most_descriptors(kMostWithoutMemory)); }
  /// Starts threads for all that waits. If that fails, it is tried again after kClosingPause.
  void start_threads_locked() noexcept {
    const bool some_waited = stalled.exchange(false);
    const bool closers_started = start_closers_locked();
    if (!start_to_clear_locked(some_waited) || !closers_started) stall_locked();
  }
  /// The same, but while stalled only once per kClosingPause.
  void start_threads_in_time_locked() noexcept {
    if (!stalled || std::chrono::steady_clock::now() >= not_before) start_threads_locked();
  }
  void stall_locked() noexcept {
    stalled = true;
    not_before = std::chrono::steady_clock::now() + kClosingPause;
    ask_again_locked();
  }
  void ask_again_locked() noexcept {
    for (const ClosingAgain* one : again) (void)one->soon();
  }
  [[nodiscard]] auto waiting_of_locked(uid_t user) const noexcept {
    return std::ranges::count(waiting, user, [](const ToClose& one) { return one.stranger.user; });
  }
  [[nodiscard]] bool start_closers_locked() noexcept;
  [[nodiscard]] bool start_to_clear_locked(bool some_waited) noexcept;
  [[nodiscard]] bool close_next(Closing& closing) noexcept;
  [[nodiscard]] std::size_t mark_surplus_locked();
  [[nodiscard]] bool nothing_to_clear_locked() noexcept;
  [[nodiscard]] bool clear_surplus() noexcept;
};

/// Atomic, without a lock: a thread about to fork might wait for the lock while it holds another one.
constinit std::atomic<Aside*> aside_now{nullptr};
/// Registered before there are threads: a child may be forked while a thread is in aside() for the first time.
[[maybe_unused]] const int left_in_children = pthread_atfork(nullptr, nullptr, [] { aside_now.store(nullptr); });

/// Never destroyed: its threads may outlive any static. A fork child makes its own, because it has none of the threads.
Aside& aside() {
  Aside* now = aside_now.load(std::memory_order_acquire);
  if (now != nullptr) return *now;
  auto made = std::make_unique<Aside>();
  if (aside_now.compare_exchange_strong(now, made.get(), std::memory_order_acq_rel)) now = made.release();
  return *now;
}

struct Closing {
  Aside& in;
  ToClose one;
};

void* close_main(void* argument) {
  const std::unique_ptr<Closing> closing(static_cast<Closing*>(argument));
  do {
    closing->one.fd.reset();
    closing->one.stranger.account.reset();
  } while (closing->in.close_next(*closing));
  return nullptr;
}

/// Called when a descriptor has been closed. The thread goes on with the next one that may be closed now, if there is
/// one, because it may be impossible to start another thread. If threads could not be started before, tries again.
bool Aside::close_next(Closing& closing) noexcept {
  const std::lock_guard lock(mutex);
  closers.remove(closing.one.stranger.user);
  closed.notify_all();
  auto next = std::ranges::find_if(waiting, [this](auto& one) { return closers.has_none(one.stranger.user); });
  if (next == waiting.end()) {
    next = std::ranges::find_if(waiting, [this](auto& one) { return closers.room_for(one.stranger.user); });
  }
  const bool found = next != waiting.end();
  if (found) {
    closers.add(next->stranger.user);  // needs no memory: it takes the place of the one removed above
    closing.one = std::move(*next);
    waiting.erase(next);
  }
  if (stalled) start_threads_locked();
  return found;
}

/// Starts one thread per descriptor, so that no descriptor waits for another. False: not for all that may be closed
/// now.
bool Aside::start_closers_locked() noexcept try {
  for (auto at = waiting.begin(); at != waiting.end();) {
    const uid_t user = at->stranger.user;
    if (!closers.room_for(user)) {
      ++at;
      continue;
    }
    auto closing = std::make_unique<Closing>(Closing{*this, {}});
    closers.add(user);
    closing->one = std::move(*at);
    if (!start_detached("lrpc-unread", &close_main, closing.get())) {
      closers.remove(user);
      *at = std::move(closing->one);
      return false;
    }
    (void)closing.release();  // the thread's
    at = waiting.erase(at);
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// ---- More than may wait ----
//
// A stranger can hold up all closing threads for as long as it likes, and each waiting descriptor takes a place in the
// descriptor table. The end of a thread closes descriptors, too, but without lingering. So a thread gets a copy of the
// table, the process closes the surplus, and the thread ends: its end closes the last copies without delay.

/// Shared by the thread that ends and the thread that waits until the former has its copy.
struct Ending {
  std::binary_semaphore copied{0};
  std::binary_semaphore closed{0};
  bool done = false;  ///< The ending thread has its copy of the table.
};

void* end_main(void* argument) {
  const std::unique_ptr<std::shared_ptr<Ending>> held(static_cast<std::shared_ptr<Ending>*>(argument));
  Ending& ending = **held;
  ending.done = ::syscall(SYS_close_range, ~0U, ~0U, CLOSE_RANGE_UNSHARE) == 0;
  ending.copied.release();
  ending.closed.acquire();
  return nullptr;
}

/// Marks the descriptors beyond kMostToClose of each user and beyond `most` of all users. Returns how many they are.
std::size_t Aside::mark_surplus_locked() {
  std::map<uid_t, unsigned> of_users;
  std::size_t surplus = 0;
  std::size_t in_all = 0;
  for (ToClose& one : waiting) {
    one.surplus = ++of_users[one.stranger.user] > kMostToClose || ++in_all > most;
    if (one.surplus) ++surplus;
  }
  return surplus;
}

/// Closes the surplus. False: there is no memory or no thread for it now.
bool Aside::clear_surplus() noexcept try {
  std::vector<ToClose> cleared;
  {
    const std::lock_guard lock(mutex);
    const std::size_t surplus = mark_surplus_locked();
    if (surplus == 0) return true;
    cleared.reserve(surplus);
  }
  const auto ending = std::make_shared<Ending>();
  auto held = std::make_unique<std::shared_ptr<Ending>>(ending);
  if (!start_detached("lrpc-ending", &end_main, held.get())) return false;
  (void)held.release();  // the thread's
  ending->copied.acquire();
  if (ending->done) {
    const std::lock_guard lock(mutex);
    const auto too_many = std::stable_partition(waiting.begin(), waiting.end(), [](auto& one) { return !one.surplus; });
    std::move(too_many, waiting.end(), std::back_inserter(cleared));
    waiting.erase(too_many, waiting.end());
  }
  cleared.clear();  // none of them is the last copy
  ending->closed.release();
  return ending->done;
} catch (const std::bad_alloc&) {
  return false;
}

void* clear_main(void* argument) {
  Aside& all = *static_cast<Aside*>(argument);
  for (;;) {
    const bool could = all.clear_surplus();
    const std::lock_guard lock(all.mutex);
    if (could && !all.nothing_to_clear_locked()) continue;  // more has come since
    all.clearing = false;
    if (!could) all.stall_locked();
    all.closed.notify_all();
    return nullptr;
  }
}

bool Aside::nothing_to_clear_locked() noexcept try {
  return waiting.size() <= std::min<std::size_t>(most, kMostToClose) || mark_surplus_locked() == 0;
} catch (const std::bad_alloc&) {
  return false;
}

/// Starts a thread that clears the surplus, if there is one. False: there is a surplus, and no thread could be started.
bool Aside::start_to_clear_locked(bool some_waited) noexcept {
  if (clearing || waiting.empty()) return true;
  if (!some_waited && waiting.size() <= most) {  // then only the count of the last one's user has grown
    if (waiting_of_locked(waiting.back().stranger.user) <= kMostToClose) return true;
  }
  if (nothing_to_clear_locked()) return true;
  clearing = start_detached("lrpc-surplus", &clear_main, this);
  return clearing;
}

struct Work {
  std::function<void(Table)> body;
  bool apart = true;
};

void* work_main(void* argument) {
  const std::unique_ptr<Work> work(static_cast<Work*>(argument));
  // A table of its own, not the nursery's, which other threads share.
  const bool alone = work->apart && ::syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE) == 0;
  work->body(alone ? Table::own : work->apart ? Table::none : Table::shared);
  return nullptr;
}

/// A descriptor that may neither be closed here nor be passed to another thread: it stays open, and its account is
/// kept.
union ForGood {
  explicit ForGood(ToClose&& one) noexcept : kept(std::move(one)) {}
  ForGood(const ForGood&) = delete;
  ForGood& operator=(const ForGood&) = delete;
  ~ForGood() {}  // NOLINT: on purpose
  ToClose kept;
};

}  // namespace

void prepare_to_close_aside() { (void)aside(); }

void close_aside(UniqueFd fd, Stranger stranger) noexcept {
  ToClose one{std::move(stranger), std::move(fd)};
  try {
    Aside& all = aside();
    const std::lock_guard lock(all.mutex);
    all.waiting.push_back(std::move(one));
    all.start_threads_in_time_locked();
  } catch (const std::bad_alloc&) {
    const ForGood kept(std::move(one));
  }
}

bool run_aside(uid_t user, std::function<void(Table)> work, std::chrono::milliseconds patience, bool apart) noexcept
    try {
  Aside& all = aside();
  auto made = std::make_unique<Work>(Work{std::move(work)});
  {
    std::unique_lock lock(all.mutex);
    const auto room = [&] { return all.porters.room_for(user) && all.waiting_of_locked(user) < kMostToClose; };
    all.start_threads_in_time_locked();  // closing threads that could not be started before
    if (!all.closed.wait_for(lock, patience, room)) return false;
  }
  bool started = apart && all.nursery.start(&work_main, made.get());
  if (!started) {
    made->apart = false;
    started = start_detached("lrpc-porter", &work_main, made.get());
  }
  if (started) (void)made.release();  // the thread's
  return started;
} catch (const std::bad_alloc&) {
  return false;
}

bool close_aside_again() noexcept {
  Aside* const all = aside_now.load(std::memory_order_acquire);
  if (all == nullptr || (!all->stalled && !all->clearing)) return false;
  const std::lock_guard lock(all->mutex);
  if (all->stalled) {
    all->start_threads_in_time_locked();
    if (all->stalled) all->ask_again_locked();  // a watcher keeps the earliest time: it may have been too early
  }
  return all->stalled || all->clearing;
}

ClosingAgain::ClosingAgain(Watcher& watcher) : watcher_(watcher) {
  Aside& all = aside();
  const std::lock_guard lock(all.mutex);
  all.again.push_back(this);
  if (all.stalled) (void)soon();
}

/// A fork child has an Aside of its own, with which this was not registered.
ClosingAgain::~ClosingAgain() {
  if (watcher_.inert()) return;
  Aside& all = aside();
  const std::lock_guard lock(all.mutex);
  std::erase(all.again, this);
  if (all.stalled) all.ask_again_locked();  // another one takes over
}

bool ClosingAgain::soon() const noexcept {
  return watcher_.post(again_, static_cast<std::uint32_t>(kClosingPause.count()));
}

HeldUp::HeldUp(uid_t user) noexcept : user_(user) {
  try {
    Aside& all = aside();
    const std::lock_guard lock(all.mutex);
    all.porters.add(user);
    counted_ = true;
  } catch (const std::bad_alloc&) {
  }
}

HeldUp::~HeldUp() {
  if (!counted_) return;
  Aside& all = aside();
  const std::lock_guard lock(all.mutex);
  all.porters.remove(user_);
  all.closed.notify_all();
}

}  // namespace lrpc::shim
