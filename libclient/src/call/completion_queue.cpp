#include "lrpc/detail/client/call/completion_queue.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/system/cancellation.h"

namespace lrpc {
namespace {

/// The polling interval while there are more words than one futex_waitv(2) can wait for.
constexpr std::chrono::milliseconds kCrowdedLook{1};

/// Appends the words of the call's cancellations (T19); calls of one scope share them. False: no room.
bool add_cancellations(std::vector<shim::FutexWait>& waits, const shim::Cancellations* chain) {
  for (; chain != nullptr; chain = chain->around.get()) {
    const void* word = &chain->word->cancelled;
    const bool known = std::ranges::any_of(waits, [&](const shim::FutexWait& one) { return one.word == word; });
    if (!known && waits.size() == shim::kMostFutexWaits) return false;
    if (!known) waits.push_back({word, 0, false});
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<CompletionQueue>> CompletionQueue::create() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return system_error("eventfd", errno);
  return std::unique_ptr<CompletionQueue>(new CompletionQueue(std::move(fd)));
}

CompletionQueue::CompletionQueue(UniqueFd ready_fd)
    : link_(*new client::QueueLink(*this, shim::this_process())), ready_fd_(std::move(ready_fd)) {}

CompletionQueue::~CompletionQueue() {
  if (inert()) {
    (void)calls_.release();
    return;
  }
  if (thread_.running()) {
    changed_.stop();  // P5
    thread_.join();
  }
  std::unique_lock lock(link_.mutex);
  link_.queue = nullptr;
  unlink(link_, std::move(lock));
}

/// Removes one holder; the last one deletes the link.
void CompletionQueue::unlink(client::QueueLink& link, std::unique_lock<std::mutex> lock) noexcept {
  const bool last = --link.holders == 0;
  lock.unlock();
  if (last) delete &link;
}

bool CompletionQueue::Watched::look() const noexcept {
  if (binding->revoked()) return true;  // first: the word of a call that a fork child's parent started is not mapped
  const shim::CallWord word = shim::load_word(*linkage->astack.head);
  if (!word.same_turn(called.bits()) || word.revoked()) return true;
  return shim::cancelled(cancellations.get()) ||
         (until != std::chrono::steady_clock::time_point::max() && std::chrono::steady_clock::now() >= until);
}

Status CompletionQueue::watch_call(client::PendingCall& call, std::function<void()> then) {
  if (inert()) return Error{Errc::not_supported, "a fork child has no completion queue of its parent's"};
  // A remote call has returned when the call to the network domain that carries it has returned.
  const client::PendingCall& rung =
      call.taken() && call.binding_->remote() ? call.binding_->remote_path()->started(*call.linkage_) : call;
  if (!rung.taken())
    return Error{Errc::invalid_argument, call.taken() ? "this call was refused before it was sent: finish() says why"
                                                      : "only a call that was started can be watched"};
  if (call.queue_ != nullptr && call.queue_ != &link_) call.stop_watching();  // a call has one queue: the last
  (void)call.execute_here();
  const shim::LinkageRecord& limits = *rung.linkage_;
  Watched watched{.binding = rung.binding_,
                  .linkage = rung.linkage_,
                  .called = rung.called_,
                  .then = std::move(then),
                  .until = limits.limited ? limits.until : std::chrono::steady_clock::time_point::max(),
                  .cancellations = limits.limited ? limits.cancellations : nullptr};
  {
    std::lock_guard lock(link_.mutex);
    if (!thread_.running()) {
      waits_.reserve(shim::kMostFutexWaits);
      const Status started = thread_.start<&CompletionQueue::sleep_on_words>({.name = "lrpc-complete"}, this);
      if (!started) return started.error();
    }
    // An earlier function for this call is destroyed after the lock is released: it may own other calls.
    std::swap(calls_->watched[call.linkage_], watched);
    if (watched.ready) calls_->ready.erase(watched.at);
    if (call.queue_ == nullptr) ++link_.holders;
    call.queue_ = &link_;
    // Under the lock: as soon as run() can resume a coroutine that waits for the call, the coroutine may destroy the
    // queue.
    changed_.raise(1);  // P1
  }
  return {};
}

void CompletionQueue::forget(client::QueueLink& link, const client::PendingCall& call) noexcept {
  if (link.owner != shim::this_process()) return;
  decltype(Calls::watched)::node_type forgotten;  // destroyed without the lock: it may own other calls
  std::unique_lock lock(link.mutex);
  if (link.queue != nullptr) {
    Calls& calls = *link.queue->calls_;
    forgotten = calls.watched.extract(call.linkage_);
    if (!forgotten.empty() && forgotten.mapped().ready) calls.ready.erase(forgotten.mapped().at);
  }
  unlink(link, std::move(lock));
}

std::size_t CompletionQueue::run() {
  if (inert()) return 0;
  eventfd_t times = 0;
  (void)::eventfd_read(ready_fd_.get(), &times);
  std::size_t most = 0;
  {
    std::lock_guard lock(link_.mutex);
    most = calls_->ready.size();
  }
  // If a function throws, fd() must be readable for the rest.
  struct Rest {
    CompletionQueue& queue;
    ~Rest() {
      const shim::NoCancellation never;
      std::lock_guard lock(queue.link_.mutex);
      if (!queue.calls_->ready.empty()) (void)::eventfd_write(queue.ready_fd_.get(), 1);
    }
  } const rest{*this};
  // One at a time: the function of one call may destroy another call.
  std::size_t count = 0;
  for (; count < most; ++count) {
    std::function<void()> then;
    {
      std::lock_guard lock(link_.mutex);
      if (calls_->ready.empty()) break;
      const auto found = calls_->watched.find(calls_->ready.front());
      calls_->ready.pop_front();
      then = std::move(found->second.then);
      calls_->watched.erase(found);
    }
    if (then) then();
  }
  return count;
}

std::size_t CompletionQueue::wait(std::chrono::milliseconds limit) {
  using std::chrono::milliseconds;
  if (inert()) return 0;
  const auto until = std::chrono::steady_clock::now() + shim::Deadline::span(std::max(limit, milliseconds(0)));
  pollfd entry{ready_fd_.get(), POLLIN, 0};
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
    const auto left_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, INT32_MAX));
    const int ready = ::poll(&entry, 1, limit == kNoLimit ? -1 : left_ms);
    // A signal, or a limit of more than 24 days, for which one poll(2) has no room.
    if ((ready < 0 && errno == EINTR) || (ready == 0 && left > left_ms)) continue;
    // If fd() was readable only for calls that have been finished or dropped since, run() makes it unreadable.
    const std::size_t count = run();
    if (count != 0 || ready <= 0) return count;
  }
}

void CompletionQueue::sleep_on_words() {
  using Clock = std::chrono::steady_clock;
  auto checked = Clock::now();
  for (;;) {
    bool news = false;
    bool again = false;
    bool crowded = false;
    auto nearest = Clock::time_point::max();
    waits_.assign(1, changed_.unless_changed(changed_.look()));  // P2: before the calls are looked at
    {
      std::lock_guard lock(link_.mutex);
      if (changed_.stopped()) return;
      for (auto& [linkage, call] : calls_->watched) {
        if (call.ready) continue;
        if (call.look()) {
          call.ready = news = true;
          call.place.front() = linkage;
          calls_->ready.splice(calls_->ready.end(), call.place);
        } else if (waits_.size() == shim::kMostFutexWaits) {
          crowded = true;
        } else {
          shim::AStackHead& head = *call.linkage->astack.head;
          shim::FutexWait wait{&head.word, 0, true};  // T3, by this thread
          const bool may_sleep =
              shim::announce_sleep(head, call.linkage->generation(), call.binding->revoked_flag(), wait.expected);
          if (may_sleep) waits_.push_back(wait);
          again = again || !may_sleep;
          nearest = std::min(nearest, call.until);
          crowded = !add_cancellations(waits_, call.cancellations.get()) || crowded;
        }
      }
    }
    if (news) (void)::eventfd_write(ready_fd_.get(), 1);
    // Check the servers this often, however often other words wake the thread.
    if (const auto now = Clock::now(); now - checked >= shim::kBoundedSleep) {
      checked = now;
      check_servers();
    }
    if (again) continue;
    const bool idle = waits_.size() == 1 && !crowded;
    std::chrono::nanoseconds limit = idle      ? std::chrono::nanoseconds(-1)
                                     : crowded ? std::chrono::nanoseconds(kCrowdedLook)
                                               : std::chrono::nanoseconds(shim::kBoundedSleep);
    if (nearest != Clock::time_point::max())  // then a call's word is waited for: not idle
      limit = std::min<std::chrono::nanoseconds>(limit, std::max(nearest - Clock::now(), Clock::duration::zero()));
    (void)shim::futex_wait_any(waits_, limit);  // P3
  }
}

/// After a bounded sleep: checks whether the servers live, and overrules their hints as BindingObject::overrule_hints()
/// does.
void CompletionQueue::check_servers() noexcept {
  std::lock_guard lock(link_.mutex);
  const client::BindingObject* last = nullptr;
  for (auto& [linkage, call] : calls_->watched) {
    if (call.ready || call.binding->revoked()) continue;
    shim::futex_wake(call.linkage->astack.head->word, shim::Sleeper::estack);
    if (call.binding == last) continue;
    last = call.binding;
    call.binding->check_server();
    if (!call.binding->revoked()) call.binding->ring_bell();
  }
}

namespace client {

void PendingCall::stop_watching() noexcept { CompletionQueue::forget(*std::exchange(queue_, nullptr), *this); }

}  // namespace client
}  // namespace lrpc
