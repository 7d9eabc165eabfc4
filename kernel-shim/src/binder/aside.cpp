#include "aside.h"

#include <linux/close_range.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <semaphore>
#include <utility>
#include <vector>

#include "lrpc/shim/system/cancellation.h"
#include "lrpc/shim/system/handover.h"
#include "lrpc/shim/system/thread.h"

namespace lrpc::shim {
namespace {

constexpr std::size_t kStack = 256 * 1024;
/// How long the first who wants a thread apart waits for the nursery, which may have to flush files of the program's.
/// It is not started earlier: until they are flushed it keeps copies of the program's other files, whose last close is
/// then late. Only who is sent something by a stranger shall have that.
constexpr std::chrono::milliseconds kNurseryTime{200};

/// True: the thread has its argument.
bool start(const char* name, Thread::Body body, void* argument) noexcept {
  Thread thread;
  if (!thread.start({.name = name, .stack_size = kStack}, body, argument)) return false;
  thread.detach();
  return true;
}

/// Descriptors that can wait to be closed, of all users, while there is no memory.
constexpr std::size_t kMostWithoutMemory = 1024;

struct ToClose {
  Stranger stranger;
  UniqueFd fd;
  bool surplus = false;  ///< To be left to the end of a thread.
};

/// How many threads wait for each user.
class Threads {
 public:
  [[nodiscard]] bool room_for(uid_t user) const {
    const auto found = of_users_.find(user);
    return found == of_users_.end() || (in_all_ < kMostAside && found->second < kMostAsideOfOne);
  }
  void add(uid_t user) {
    ++of_users_[user];
    ++in_all_;
  }
  void remove(uid_t user) noexcept {
    const auto found = of_users_.find(user);
    if (--found->second == 0) of_users_.erase(found);
    --in_all_;
  }

 private:
  std::map<uid_t, unsigned> of_users_;
  unsigned in_all_ = 0;
};

/// A thread with an empty table of descriptors, which starts others that have it, too. A table cannot be had empty: it
/// begins as a copy, and closing that flushes the program's own files. Once is enough.
class Nursery {
 public:
  /// Starts a thread apart. False: that cannot be had.
  bool start(Thread::Body body, void* argument);

 private:
  enum class State : std::uint8_t { none, coming, ready, refused };
  static void* thread_main(void* self);
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::none;
  Thread::Body body_ = nullptr;  ///< To be started now; null: nothing.
  void* argument_ = nullptr;
  bool started_ = false;
  bool waited_ = false;
  std::mutex one_at_a_time_;
};

bool Nursery::start(Thread::Body body, void* argument) {
  const std::lock_guard turn(one_at_a_time_);
  std::unique_lock lock(mutex_);
  if (state_ == State::none) {
    if (!shim::start("lrpc-nursery", &Nursery::thread_main, this)) return false;
    state_ = State::coming;
  }
  // Once: it may wait for a file of the program's for good.
  if (state_ == State::coming && !std::exchange(waited_, true)) {
    changed_.wait_for(lock, kNurseryTime, [this] { return state_ != State::coming; });
  }
  if (state_ != State::ready) return false;
  argument_ = argument;
  body_ = body;
  changed_.notify_all();
  changed_.wait(lock, [this] { return body_ == nullptr; });
  return started_;
}

void* Nursery::thread_main(void* self) {
  const NoCancellation never;
  static_cast<Nursery*>(self)->run();
  return nullptr;
}

/// Whether a thread apart can have copies of the process's descriptors, or only lacks a free number for them now.
bool can_fetch() noexcept {
  if (has_thread_sanitizer()) return false;  // it takes the numbers of one table for those of another
  const UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!self) return errno == EMFILE;
  const UniqueFd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, self.get(), self.get(), 0)));
  return copy || errno == EMFILE;
}

void Nursery::run() {
  const bool empty = can_fetch() && ::syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE) == 0;
  std::unique_lock lock(mutex_);
  state_ = empty ? State::ready : State::refused;
  changed_.notify_all();
  if (!empty) return;
  for (;;) {
    changed_.wait(lock, [this] { return body_ != nullptr; });
    started_ = shim::start("lrpc-porter", body_, argument_);
    body_ = nullptr;
    changed_.notify_all();
  }
}

/// kMostToCloseOfAll, or the part of it that this process can have.
std::size_t most_to_close() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostToCloseOfAll;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur / kPartToClose, kMostToCloseOfAll));
}

struct Aside {
  std::mutex mutex;
  Threads closers;
  Threads porters;
  std::vector<ToClose> waiting;    ///< Has room for many from the beginning: there may be no memory when they come.
  std::condition_variable closed;  ///< Signalled when something is that was waited for.
  Nursery nursery;
  const std::size_t most = most_to_close();
  bool clearing = false;  ///< There is a thread that clears the surplus away.

  Aside() { waiting.reserve(kMostWithoutMemory); }
  void start_closers_locked() noexcept;
  void start_to_clear_locked() noexcept;
  [[nodiscard]] std::size_t mark_surplus_locked();
  [[nodiscard]] bool clear_surplus() noexcept;
};

/// Without a lock, which a thread about to fork might wait for while it holds another's.
std::atomic<Aside*> aside_now{nullptr};

/// Never destroyed: its threads may outlive any static. A fork child has one of its own, for none of the threads is
/// there.
Aside& aside() {
  Aside* now = aside_now.load(std::memory_order_acquire);
  if (now != nullptr) return *now;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { aside_now.store(nullptr); });
  (void)registered;
  auto made = std::make_unique<Aside>();
  if (aside_now.compare_exchange_strong(now, made.get(), std::memory_order_acq_rel)) now = made.release();
  return *now;
}

struct Closing {
  Aside& in;
  ToClose one;
};

void* close_main(void* argument) {
  const NoCancellation never;
  const std::unique_ptr<Closing> closing(static_cast<Closing*>(argument));
  closing->one.fd.reset();
  closing->one.stranger.account.reset();
  const std::lock_guard lock(closing->in.mutex);
  closing->in.closers.remove(closing->one.stranger.user);
  closing->in.start_closers_locked();
  closing->in.closed.notify_all();
  return nullptr;
}

/// One descriptor a thread: others of this user, and of everybody, need not wait for it.
void Aside::start_closers_locked() noexcept {
  try {
    for (auto at = waiting.begin(); at != waiting.end();) {
      const uid_t user = at->stranger.user;
      if (!closers.room_for(user)) {
        ++at;
        continue;
      }
      auto closing = std::make_unique<Closing>(Closing{*this, {}});
      closers.add(user);
      closing->one = std::move(*at);
      if (!start("lrpc-unread", &close_main, closing.get())) {
        closers.remove(user);
        *at = std::move(closing->one);  // until the next one comes
        return;
      }
      (void)closing.release();  // the thread's
      at = waiting.erase(at);
    }
  } catch (const std::bad_alloc&) {  // what waits waits on
  }
}

// ---- More than may wait ----
//
// Threads that close can all be held up for as long as a stranger likes, and what waits for them has a place each in
// the table of descriptors. The end of a thread closes, too, but what it closes does not linger. So a thread gets a
// copy of the table, the process closes what is too much, and the thread ends: whatever is closed by that is closed in
// no time.

/// The thread that ends, and who waits for it to have its copy.
struct Ending {
  std::binary_semaphore copied{0};
  std::binary_semaphore closed{0};
  bool done = false;  ///< There is a copy.
};

void* end_main(void* argument) {
  const NoCancellation never;
  const std::unique_ptr<std::shared_ptr<Ending>> held(static_cast<std::shared_ptr<Ending>*>(argument));
  Ending& ending = **held;
  ending.done = ::syscall(SYS_close_range, ~0U, ~0U, CLOSE_RANGE_UNSHARE) == 0;
  ending.copied.release();
  ending.closed.acquire();
  return nullptr;
}

/// Of each user what is over kMostToClose, and of all what is over the most: how many those are.
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

/// False: there is none, or no memory for it now.
bool Aside::clear_surplus() noexcept {
  try {
    std::vector<ToClose> cleared;
    {
      const std::lock_guard lock(mutex);
      const std::size_t surplus = mark_surplus_locked();
      if (surplus == 0) return false;
      cleared.reserve(surplus);
    }
    const auto ending = std::make_shared<Ending>();
    auto held = std::make_unique<std::shared_ptr<Ending>>(ending);
    if (!start("lrpc-ending", &end_main, held.get())) return false;
    (void)held.release();  // the thread's
    ending->copied.acquire();
    if (ending->done) {
      const std::lock_guard lock(mutex);
      const auto too_many =
          std::stable_partition(waiting.begin(), waiting.end(), [](auto& one) { return !one.surplus; });
      std::move(too_many, waiting.end(), std::back_inserter(cleared));
      waiting.erase(too_many, waiting.end());
    }
    const bool done = ending->done && !cleared.empty();
    cleared.clear();  // none of them is the last copy
    ending->closed.release();
    return done;
  } catch (const std::bad_alloc&) {
  }
  return false;
}

void* clear_main(void* argument) {
  const NoCancellation never;
  Aside& all = *static_cast<Aside*>(argument);
  while (all.clear_surplus()) continue;
  const std::lock_guard lock(all.mutex);
  all.clearing = false;
  all.closed.notify_all();
  return nullptr;
}

void Aside::start_to_clear_locked() noexcept {
  if (clearing || waiting.empty()) return;
  const uid_t last = waiting.back().stranger.user;  // only its share has grown
  const auto of_last = std::ranges::count(waiting, last, [](const ToClose& one) { return one.stranger.user; });
  if (waiting.size() <= most && static_cast<std::size_t>(of_last) <= kMostToClose) return;
  clearing = start("lrpc-surplus", &clear_main, this);
}

struct Work {
  std::function<void(Table)> body;
  bool apart = true;
};

void* work_main(void* argument) {
  const NoCancellation never;
  const std::unique_ptr<Work> work(static_cast<Work*>(argument));
  // Not the nursery's either, which others of its children have.
  const bool alone = work->apart && ::syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE) == 0;
  work->body(alone ? Table::own : work->apart ? Table::none : Table::shared);
  return nullptr;
}

/// What cannot be closed here, nor be given to anybody: stays open, and its account with it.
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
    all.start_closers_locked();
    all.start_to_clear_locked();
  } catch (const std::bad_alloc&) {
    const ForGood kept(std::move(one));
  }
}

bool run_aside(uid_t user, std::function<void(Table)> work, std::chrono::milliseconds patience, bool apart) noexcept {
  try {
    Aside& all = aside();
    auto made = std::make_unique<Work>(Work{std::move(work)});
    {
      std::unique_lock lock(all.mutex);
      const auto room = [&] {
        return all.porters.room_for(user) && std::ranges::count(all.waiting, user, [](const ToClose& one) {
                                               return one.stranger.user;
                                             }) < kMostToClose;
      };
      all.start_closers_locked();  // those for which there was no thread
      if (!all.closed.wait_for(lock, patience, room)) return false;
    }
    bool started = apart && all.nursery.start(&work_main, made.get());
    if (!started) {
      made->apart = false;
      started = start("lrpc-porter", &work_main, made.get());
    }
    if (started) (void)made.release();  // the thread's
    return started;
  } catch (const std::bad_alloc&) {
  }
  return false;
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
