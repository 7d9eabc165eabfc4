#include "lrpc/detail/client/binding/binding_object.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "library.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/system/cancellation.h"
#include "lrpc/detail/shim/system/processor.h"
#include "secondary_astacks.h"

namespace lrpc::client {

/// A long call keeps its tail's pages. The watcher tries again to trim them, at growing intervals up to this.
constexpr std::uint32_t kLongestTrimDelayMs = 64'000;
/// The watcher takes delays of 32 bits, in milliseconds.
constexpr std::chrono::milliseconds kLongestGrownIdle = std::chrono::hours(24);

BindingObject::BindingObject(BindingParts parts)
    : local_(parts.remote == nullptr ? kLocal : 0),
      poll_limits_{.wait = shim::CallerPolicy::kExchangeMicroseconds * shim::poll_delays_per_microsecond(),
                   .most = shim::PollPace::kMostNs * shim::poll_delays_per_microsecond() / 1000},
      owner_(shim::this_process()),
      parts_(std::move(parts)),
      records_(parts_.region.layout().astack_count()) {
  shim::prepare_to_close_aside();
  quarantined_.reserve(records_.size());  // quarantine() must not fail, so it must not allocate
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    records_[i].index = i;
    records_[i].astack = parts_.region.astack(i);
  }
  const auto classes = parts_.region.layout().classes();
  lists_ = std::make_unique<AStackList[]>(classes.size());
  if (parts_.supply == AStackSupply::grow) {
    secondary_ = std::make_unique<SecondaryAStacks>(*this);
    return_ = shim::Watcher::Task([this, number = number_] { run(this, number, &BindingObject::return_unused); });
  }
  const SecondaryRecords* secondary = secondary_ != nullptr ? &secondary_->records() : nullptr;
  for (std::size_t i = 0; i < classes.size(); ++i)
    lists_[i].fill(records_, classes[i].first_astack, classes[i].declared.count, secondary);
}

Result<std::unique_ptr<BindingObject>> BindingObject::create(BindingParts parts) {
  std::unique_ptr<BindingObject> object(new BindingObject(std::move(parts)));
  if (auto& told = object->parts_.on_revoked) object->news_.call(std::move(told));
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
  const auto on_end = [this](shim::Watcher::Event event) { watcher_saw_end(event.id); };
  if (parts_.server_pidfd) {
    auto watched = watcher.watch(parts_.server_pidfd.get(), on_end);
    if (!watched) return watched.error();
    pidfd_watch_ = *watched;
  }
  // The only event that a server can cause on the bell is its end.
  auto watched = watcher.watch(parts_.bell.get(), on_end, {}, shim::Watcher::For::end);
  if (!watched) return watched.error();
  bell_watch_ = *watched;
  return {};
}

// B20
void BindingObject::watcher_saw_end(std::uint64_t watch) noexcept {
  Library::get().watcher.unwatch(watch);
  keepers_.fetch_add(1, std::memory_order_relaxed);  // a callback may release this
  (void)end_calls();
  news_.tell();
  release();
}

void BindingObject::end_watching() noexcept {
  if (std::exchange(watching_ended_, true)) return;
  Library& library = Library::get();
  library.watcher.unwatch(pidfd_watch_);
  library.watcher.unwatch(bell_watch_);
  // A sealed process may call close(2), but not shutdown(2) or what else hang_up() and reset() need. Nothing lies in
  // this end, which takes nothing: it was imported by a name, or the process could not have been sealed.
  if (parts_.gate == shim::Gate::trap && sealed()) return parts_.bell.release().reset();
  parts_.bell.hang_up();  // a forked child may hold it, too; the server must see the end now
}

/// The number of A-stacks that are neither idle nor in quarantine. Call it under the library's lock, which keeps the
/// watcher from trimming, or in a forked child. No other thread may use the lists.
std::size_t BindingObject::count_started(std::size_t quarantined) const noexcept {
  std::size_t count = records_.size() + (secondary_ != nullptr ? secondary_->count() : 0);
  for (std::size_t i = 0; i < parts_.region.layout().classes().size(); ++i) count -= lists_[i].count_idle();
  return count - quarantined;
}

// This costs the call path nothing: a started call that outlives its binding finds it revoked, takes the slow halves,
// and ends in quarantine().
void BindingObject::let_go() noexcept {
  const shim::NoCancellation never;
  if (owner_ != shim::this_process()) return let_go_after_fork();
  end_watching();
  std::size_t started = 0;
  {
    const std::lock_guard lock(Library::get().mutex);
    std::unique_lock quarantine(quarantine_mutex_);
    const std::size_t quarantined = quarantined_.size();
    quarantine.unlock();
    started = count_started(quarantined);
  }
  if (started != 0) {
    keepers_.fetch_add(started, std::memory_order_relaxed);
    let_go_.store(true, std::memory_order_release);
    revoke();
    if (parts_.remote != nullptr) parts_.remote->let_go();
  }
  release();
}

/// In a forked child a lock or a call may belong to a thread that does not exist there. Memory that a started call may
/// still read is never freed.
void BindingObject::let_go_after_fork() noexcept {
  if (secondary_ != nullptr) return;
  {
    const std::unique_lock lock(quarantine_mutex_, std::try_to_lock);
    if (!lock.owns_lock() || count_started(quarantined_.size()) != 0) return;
  }
  delete this;
}

void BindingObject::release() noexcept {
  if (keepers_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

BindingObject::~BindingObject() {
  if (owner_ != shim::this_process()) return;  // a forked child has registered nothing
  const shim::NoCancellation never;
  end_watching();
  // Trimming runs on the watcher under the same lock, so after this nobody else knows this object.
  Library& library = Library::get();
  std::lock_guard lock(library.mutex);
  library.bindings.erase(this);
}

void BindingObject::forget_after_fork() noexcept {
  forgotten_ = true;
  revoked_.store(true, std::memory_order_release);
  for (std::size_t i = 0; i < parts_.region.layout().classes().size(); ++i) lists_[i].close_after_fork();
  if (secondary_ != nullptr) secondary_->forget_after_fork();
  parts_.bell.reset();
  parts_.server_pidfd.reset();
  news_.forget_after_fork();
}

void BindingObject::set_call_timeout(std::chrono::milliseconds timeout) noexcept {
  parts_.call_timeout = timeout;
  for (shim::LinkageRecord& record : records_) record.policy.trust_no_longer();  // see choose_way()
  if (secondary_ != nullptr) secondary_->trust_no_longer();
  if (parts_.remote) parts_.remote->set_call_timeout(timeout);
}

void BindingObject::ring_bell() const noexcept { shim::ring_bell(parts_.bell.get()); }

void BindingObject::overrule_hints(shim::AStackHead& head) const noexcept {
  if (revoked()) return;
  shim::futex_wake(head.word, shim::Sleeper::estack);
  ring_bell();
}

void BindingObject::check_server() noexcept {
  if (parts_.gate == shim::Gate::trap) return;  // the next trap reports it
  std::array<pollfd, 2> fds{{{parts_.server_pidfd.get(), POLLIN, 0}, {parts_.bell.get(), 0, 0}}};
  if (poll(fds.data(), fds.size(), 0) <= 0) return;
  const bool dead = (fds[0].revents & POLLIN) != 0;
  const bool hung_up = (fds[1].revents & (POLLHUP | POLLERR)) != 0;
  if (dead || hung_up) revoke();
}

void BindingObject::revoke() noexcept {
  // The watcher calls the functions of when_revoked(). If the server lives, but broke the protocol, only this hang-up
  // tells the watcher and that server of the end.
  if (end_calls() && parts_.watched) parts_.bell.hang_up();
}

bool BindingObject::end_calls() noexcept {
  if (revoked()) return false;
  const shim::NoCancellation never;
  LRPC_STEP("T17");
  // The lists first: then the binding is never revoked while a list is open, and the call path checks only the list.
  for (std::size_t i = 0; i < parts_.region.layout().classes().size(); ++i) lists_[i].close();
  if (revoked_.exchange(true, std::memory_order_seq_cst)) return false;
  // T17. An A-stack that rests now is in no call, and its next call sees the flag. Its word may lie on a page that this
  // process has never touched.
  for (std::size_t i = 0; i < parts_.region.layout().classes().size(); ++i) lists_[i].note_resting();
  for (shim::LinkageRecord& record : records_)
    if (!record.rested) shim::revoke_word(*record.astack.head, shim::Sleeper::caller);
  if (secondary_ != nullptr) secondary_->revoke();
  for (std::size_t i = 0; i < parts_.region.layout().classes().size(); ++i) lists_[i].wake_waiters();
  if (!has_been_let_go()) news_.signal();
  return true;
}

Status BindingObject::watched() const {
  if (owner_ != shim::this_process()) return Error{Errc::not_supported, "bindings do not survive fork"};
  if (parts_.watched) return {};
  return Error{
      Errc::not_supported,
      "nobody watches a server for a binding whose watcher was declined, nor for a sealed domain's: its end is "
      "seen by calls alone"};
}

Result<int> BindingObject::revocation_fd() {
  const shim::NoCancellation never;
  if (!parts_.watched) return watched().error();
  return news_.descriptor(revoked_);
}

Status BindingObject::when_revoked(std::function<void()> told) {
  if (Status possible = watched(); !possible) return possible;
  if (!told) return Error{Errc::invalid_argument, "when_revoked(): an empty function"};
  news_.call(std::move(told));
  return {};
}

void BindingObject::schedule_trim(std::uint32_t delay_ms) noexcept {
  if (forgotten_) return;  // a call that was started before the fork may end in the child, which has no watcher
  if (tails_used_.exchange(true)) return;
  const shim::NoCancellation never;
  if (parts_.gate == shim::Gate::trap) return;  // a sealed process has no watcher; its tails stay
  trim_delay_ms_ = delay_ms;
  if (!Library::of_living_binding().watcher.post(trim_, delay_ms))
    tails_used_.store(false);  // the next use of a tail tries again
}

void BindingObject::run(BindingObject* binding, std::uint64_t number, void (BindingObject::*task)()) {
  Library& library = Library::of_living_binding();
  std::lock_guard lock(library.mutex);
  if (library.bindings.contains(binding) && binding->number_ == number) (binding->*task)();
}

void BindingObject::schedule_return() noexcept {
  if (parts_.grown_idle == kNoLimit) return;
  if (return_scheduled_.exchange(true)) return;
  const auto delay = static_cast<std::uint32_t>(std::min(parts_.grown_idle, kLongestGrownIdle).count());
  // If this fails, the next growth tries again.
  if (!Library::of_living_binding().watcher.post(return_, delay)) return_scheduled_.store(false);
}

void BindingObject::return_unused() {
  return_scheduled_.store(false);
  if (secondary_->return_unused()) schedule_return();
}

void BindingObject::trim() {
  if (has_been_let_go()) return;
  // Before tails_used_ is cleared: then trim_delay_ms_ is another thread's.
  const std::uint32_t next = std::min(2 * trim_delay_ms_, kLongestTrimDelayMs);
  std::vector<shim::LinkageRecord*> idle;
  idle.reserve(records_.size() + (secondary_ != nullptr ? secondary_->count() : 0));
  tails_used_.store(false);
  trim_phase_.fetch_add(1, std::memory_order_seq_cst);
  const auto classes = parts_.region.layout().classes();
  bool all_idle = true;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].tail_stride == 0) continue;
    (void)release_quarantined(lists_[i]);  // an A-stack that the server has returned is idle, too
    // Takes the idle A-stacks out of the list, so that nobody writes a tail while its pages are returned.
    idle.clear();
    lists_[i].take_idle(idle);
    for (const shim::LinkageRecord* record : idle) parts_.region.trim_tail(record->astack);
    lists_[i].put_idle(idle);
    const std::size_t grown = secondary_ != nullptr ? secondary_->count(static_cast<std::uint16_t>(i)) : 0;
    all_idle &= idle.size() >= classes[i].declared.count + grown;
  }
  trim_phase_.fetch_add(1, std::memory_order_release);
  // A call that is still under way keeps its tail's pages. It may have used the tail before tails_used_ was cleared,
  // and does not set it again.
  if (!all_idle) schedule_trim(next);
}

}  // namespace lrpc::client
