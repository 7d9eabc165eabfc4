#include "lrpc/client/binding_object.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "lrpc/shim/gates.h"
#include "lrpc/shim/processor.h"
#include "lrpc/shim/watcher.h"

namespace lrpc::client {
namespace {

/// How long a caller polls for a return before it gives the exchange up: about two futex round trips.
constexpr std::uint32_t kExchangeMicroseconds = 20;
constexpr std::uint32_t kTrimDelayMs = 1000;

/// The library's watcher and the list of live bindings. Never destroyed: bindings in static storage may outlive any static.
struct Library {
  shim::Watcher watcher{"lrpc-client"};
  std::mutex mutex;
  std::set<BindingObject*> bindings;

  static Library& get();
};

std::mutex library_mutex;
Library* library_now = nullptr;

void before_fork() {
  library_mutex.lock();
  if (library_now != nullptr) library_now->mutex.lock();
}

void after_fork_in_parent() {
  if (library_now != nullptr) library_now->mutex.unlock();
  library_mutex.unlock();
}

/// A fork child does not hold bindings (design §2): each is revoked before anybody can touch its memory. New ones may be
/// made, with a watcher of the child's own; the parent's, whose thread is not here, is left behind.
void after_fork_in_child() {
  if (library_now != nullptr) {
    for (BindingObject* binding : library_now->bindings) binding->forget_after_fork();
    library_now->mutex.unlock();
    library_now = nullptr;
  }
  library_mutex.unlock();
}

Library& Library::get() {
  std::lock_guard lock(library_mutex);
  if (library_now == nullptr) {
    static const int registered = pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
    (void)registered;
    library_now = new Library;  // NOLINT: leaked on purpose, see above
  }
  return *library_now;
}

}  // namespace

BindingObject::BindingObject(BindingParts parts)
    : exchange_looks_(kExchangeMicroseconds * shim::polls_per_microsecond()),
      owner_(getpid()),
      parts_(std::move(parts)),
      records_(parts_.region.layout().astack_count()) {
  (void)shim::ticks_per_microsecond();  // measure now, not in the first call
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    records_[i].index = i;
    records_[i].astack = parts_.region.astack(i);
  }
  const auto classes = parts_.region.layout().classes();
  lists_ = std::make_unique<AStackList[]>(classes.size());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    lists_[i].fill(records_, classes[i].first_astack, classes[i].declared.count);
  }
}

Result<std::unique_ptr<BindingObject>> BindingObject::create(BindingParts parts) {
  std::unique_ptr<BindingObject> object(new BindingObject(std::move(parts)));
  Library& library = Library::get();
  {
    std::lock_guard lock(library.mutex);
    library.bindings.insert(object.get());
  }
  if (object->parts_.watched) {
    if (Status watching = object->watch(); !watching) return watching.error();
  }
  return object;
}

Status BindingObject::watch() {
  shim::Watcher& watcher = Library::get().watcher;
  if (parts_.server_pidfd) {
    auto watched = watcher.watch(parts_.server_pidfd.get(), [this](shim::Watcher::Event event) { watcher_saw_end(event.id); });
    if (!watched) return watched.error();
    pidfd_watch_ = *watched;
  }
  auto watched = watcher.watch(parts_.bell.get(), [this](shim::Watcher::Event event) {
    if (event.hung_up) {
      watcher_saw_end(event.id);
    } else {
      std::array<std::byte, 64> ignored;  // a server has nothing to say on the bell
      (void)recv(parts_.bell.get(), ignored.data(), ignored.size(), MSG_DONTWAIT);
    }
  });
  if (!watched) return watched.error();
  bell_watch_ = *watched;
  return {};
}

void BindingObject::watcher_saw_end(std::uint64_t watch) noexcept {
  Library::get().watcher.unwatch(watch);
  revoke();
  if (!told_ && parts_.on_revoked) parts_.on_revoked();
  told_ = true;
}

BindingObject::~BindingObject() {
  if (owner_ != getpid()) return;  // in a fork child nothing of this is registered
  {
    Library& library = Library::get();
    library.watcher.unwatch(pidfd_watch_);
    library.watcher.unwatch(bell_watch_);
    // Trimming runs on the watcher under the same lock, so after this nobody else knows this object.
    std::lock_guard lock(library.mutex);
    library.bindings.erase(this);
  }
}

void BindingObject::forget_after_fork() noexcept { revoked_.store(true, std::memory_order_release); }

shim::LinkageRecord* BindingObject::take_slow(AStackList& list) noexcept {
  for (;;) {
    if (revoked()) return nullptr;
    if (shim::LinkageRecord* record = list.take_any()) return record;
    if (any_quarantined_.load(std::memory_order_acquire) && release_quarantined(list)) continue;
    if (!parts_.wait_for_astack) return nullptr;
    list.wait(shim::kBoundedSleep);
    if (!parts_.watched) check_server();
  }
}

void BindingObject::quarantine(shim::LinkageRecord& record) noexcept {
  std::lock_guard lock(quarantine_mutex_);
  quarantined_.push_back(&record);
  any_quarantined_.store(true, std::memory_order_release);
}

bool BindingObject::release_quarantined(AStackList& list) noexcept {
  bool released = false;
  std::lock_guard lock(quarantine_mutex_);
  std::erase_if(quarantined_, [&](shim::LinkageRecord* record) {
    if (&lists_[record->astack.astack_class] != &list) return false;
    if (!shim::load_word(*record->astack.head).is(shim::Turn::returned, record->generation)) return false;  // T16
    record->quarantined = false;
    list.put(*record);
    return released = true;
  });
  any_quarantined_.store(!quarantined_.empty(), std::memory_order_release);
  return released;
}

void BindingObject::ring_bell() const noexcept {
  const char one = 1;
  (void)send(parts_.bell.get(), &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);  // full: the clerk has enough to read already
}

void BindingObject::check_server() noexcept {
  std::array<pollfd, 2> fds{{{parts_.server_pidfd.get(), POLLIN, 0}, {parts_.bell.get(), POLLRDHUP, 0}}};
  if (poll(fds.data(), fds.size(), 0) <= 0) return;
  const bool dead = (fds[0].revents & POLLIN) != 0;
  const bool hung_up = (fds[1].revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
  if (dead || hung_up) revoke();
}

void BindingObject::revoke() noexcept {
  if (revoked_.exchange(true, std::memory_order_seq_cst)) return;
  // T17
  for (shim::LinkageRecord& record : records_) shim::revoke_word(*record.astack.head, shim::Sleeper::caller);
  for (std::size_t i = 0; i < parts_.region.layout().classes().size(); ++i) lists_[i].wake_waiters();
}

void BindingObject::schedule_trim() noexcept {
  if (tails_used_.exchange(true)) return;
  (void)Library::get().watcher.post(
      [this] {
        Library& library = Library::get();
        std::lock_guard lock(library.mutex);
        if (library.bindings.contains(this)) trim_idle_tails();
      },
      kTrimDelayMs);
}

void BindingObject::trim_idle_tails() noexcept {
  tails_used_.store(false);
  const auto classes = parts_.region.layout().classes();
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].tail_stride == 0) continue;
    // Whoever is not in a call now: taken one by one, so that nobody writes a tail that is being punched.
    std::vector<shim::LinkageRecord*> idle;
    while (shim::LinkageRecord* record = lists_[i].take_any()) idle.push_back(record);
    for (shim::LinkageRecord* record : idle) {
      parts_.region.trim_tail(record->astack);
      lists_[i].put(*record);
    }
  }
}

}  // namespace lrpc::client
