// The slow halves of calls that are started now and finished later.
#include "lrpc/detail/client/call/pending.h"

#include <algorithm>

#include "binding/waiting.h"
#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/detail/shim/system/cancellation.h"
#include "transfer.h"

namespace lrpc::client {

using shim::AStackHead;
using shim::CallWord;
using shim::LinkageRecord;
using Clock = std::chrono::steady_clock;

lrpc::detail::Failure PendingCall::why_not_started() const noexcept {
  if (error_ == Errc::invalid_argument) return refused(error_, "this call has been finished, or moved from");
  if (binding_ != nullptr || called_ == CallWord()) return error_;
  return refused(error_, reinterpret_cast<const char*>(called_.bits()));  // NOLINT: address_of() has put it there
}

void PendingCall::take_slow(std::uint16_t astack_class) noexcept {
  AStackList& list = binding_->astacks(astack_class);
  const BindingObject::Taken taken = binding_->take_slow(list);
  linkage_ = taken.record;
  if (linkage_ == nullptr) {
    error_ = taken.why_not;
    return;
  }
  list.give_up(*linkage_);  // ends this thread's lease of it, if there is one: now only the call owns the A-stack
}

/// Stores the call's limits for every later wait, and the time that is left for the procedure. False: no time is left,
/// or the call is cancelled: do not ring.
bool PendingCall::limit() noexcept {
  const CallWord limited = limit_call(*binding_, *linkage_, called_);
  if (limited == CallWord()) return false;
  called_ = limited;
  if (const shim::CallLimits* const limits = shim::calling_thread.limits; limits != nullptr)
    linkage_->cancellations = limits->cancellations();
  linkage_->until = Waiting(binding_->call_timeout()).until();
  linkage_->limited = true;
  return true;
}

bool PendingCall::given_up(const LinkageRecord& linkage) noexcept {
  return shim::cancelled(linkage.cancellations.get()) || Clock::now() >= linkage.until;
}

void PendingCall::forget_limits(LinkageRecord& linkage) noexcept {
  linkage.limited = false;
  linkage.cancellations.reset();
}

/// The call cannot be made: the A-stack goes back.
bool PendingCall::not_rung(Errc why) noexcept {
  put_back();
  error_ = why;
  return false;
}

bool PendingCall::ring_slow(bool may_block) noexcept {
  const shim::NoCancellation never;
  LinkageRecord& linkage = *linkage_;
  AStackHead& head = *linkage.astack.head;
  if (binding_->remote()) return ring_remote();  // its limits apply to the call to the network domain
  if ((shim::calling_thread.limits != nullptr || binding_->times_calls()) && !limit()) return not_rung(why_over());
  if (binding_->gate() == shim::Gate::none) {
    if (binding_->inline_server().serve == nullptr) {  // nobody serves it, see set_inline_server()
      linkage.take_back();                             // never rung
      return not_rung(Errc::call_failed);
    }
    shim::ring_exchange(head, called_);
    return true;
  }
  if (binding_->gate() == shim::Gate::trap) {
    if (!binding_->sealed()) {  // nobody listens yet, see lrpc::seal()
      linkage.take_back();
      return not_rung(Errc::not_supported);
    }
    // The kernel blocks this thread until the call has returned.
    (void)transfer_trap(*binding_, linkage, called_, false);
    return true;
  }
  if (!may_block && choose_way(*binding_, linkage, false) == shim::CallerPolicy::Way::exchange) return ring_polled();
  const bool parked = shim::ring_handoff(head, called_);  // T2
  if (parked || linkage.estack_may_sleep || head.attached.load(std::memory_order_seq_cst) == 0)
    wake_estack(*binding_, linkage);
  return true;
}

/// 4 · hands the arguments to the network domain. Nobody polls an A-stack of a remote binding, so every ring comes by
/// here.
bool PendingCall::ring_remote() noexcept {
  const Errc started = binding_->remote_path()->start(called_.procedure(), *linkage_);
  if (started != Errc::ok) return not_rung(started);
  shim::ring_exchange(*linkage_->astack.head, called_);  // only wait() reads it, and then takes the slow path
  return true;
}

bool PendingCall::remote_ready() const noexcept { return binding_->remote_path()->started(*linkage_).ready(); }

/// Executes the call in this thread if the binding has an inline server or the trap gate, and the call has not
/// returned. (A trap is due here if a false hint announced a poller; a sealed client has none.) False: the server's
/// threads have the call.
bool PendingCall::execute_here() noexcept {
  LinkageRecord& linkage = *linkage_;
  const InlineServer& server = binding_->inline_server();
  const bool traps = binding_->gate() == shim::Gate::trap;
  if (server.serve == nullptr && !traps) return false;
  if (binding_->revoked() || answered()) return true;
  if (traps) {
    (void)transfer_trap(*binding_, linkage, called_, true);
  } else {
    server.serve(server.server, linkage.index);
  }
  return true;
}

/// Called after a ring by plain store if one of the hints is off, or says that the poller cannot fence for us.
void PendingCall::look_again() noexcept {
  const shim::NoCancellation never;
  const AStackHead& head = *linkage_->astack.head;
  if (shim::still_polled(head) && head.attached.load(std::memory_order_relaxed) != 0) return;
  if (!execute_here()) wake_estack(*binding_, *linkage_);
}

/// After a ring by plain store: polls the word for as long as a poller may take. True: the word has changed. False: the
/// poller that the hint announced does not poll, and the E-stack has been woken.
bool PendingCall::poll_for_return() noexcept {
  LinkageRecord& linkage = *linkage_;
  CallWord word;
  if (shim::poll_return(linkage, binding_->poll_limits(), word)) return true;
  linkage.policy.exchange_missed(shim::this_moment());  // H9
  wake_estack(*binding_, linkage);
  return false;
}

/// After let_go() no list takes the A-stack back: makes put_back() call quarantine().
void PendingCall::quarantine_if_let_go() noexcept {
  if (binding_->has_been_let_go()) linkage_->quarantined = true;
}

std::uint16_t PendingCall::wait_slow() noexcept {
  const std::uint16_t status = wait_for_status();
  quarantine_if_let_go();
  return status;
}

std::uint16_t PendingCall::wait_for_status() noexcept {
  const shim::NoCancellation never;
  LinkageRecord& linkage = *linkage_;
  AStackHead& head = *linkage.astack.head;
  if (queue_ != nullptr) stop_watching();
  if (binding_->forgotten()) {
    linkage.quarantined = true;
    return failed(Errc::call_failed);
  }
  if (binding_->remote()) return binding_->remote_path()->finish(linkage);
  if (execute_here()) {
    const CallWord word = shim::load_word(head);
    linkage.quarantined = !word.returns(called_);
    return word.returns(called_) ? word.status() : failed(Errc::call_failed);
  }
  if (!ready() && linkage.estack_may_sleep) (void)poll_for_return();
  return sleep_until_returned(*binding_, linkage);
}

bool PendingCall::wait_for(std::chrono::nanoseconds limit) noexcept {
  const shim::NoCancellation never;
  const auto deadline = Clock::now() + std::clamp(limit, std::chrono::nanoseconds(0), kLongestWait);
  LookAfterServer look;
  while (!ready()) {
    LinkageRecord& linkage = *linkage_;
    AStackHead& head = *linkage.astack.head;
    if (binding_->remote()) return binding_->remote_path()->started(linkage).wait_for(deadline - Clock::now());
    if (execute_here() || Clock::now() >= deadline) return ready();
    if (linkage.estack_may_sleep && poll_for_return()) return true;
    const Waiting waiting(linkage);
    const auto bound = waiting.left(std::min<std::chrono::nanoseconds>(shim::kBoundedSleep, deadline - Clock::now()));
    // This thread's own scope ends the wait, not the call.
    if (bound.count() <= 0 || waiting.cancelled()) return ready();
    if (!look.due()) {
      const shim::Wake wake = sleep_for_return(*binding_, linkage, waiting, bound);
      look.slept(wake);
      if (wake != shim::Wake::timed_out) continue;
    }
    binding_->check_server();
    binding_->overrule_hints(head);
    look.looked();
  }
  return true;
}

void PendingCall::abandon_rung() noexcept {
  const shim::NoCancellation never;
  LinkageRecord& linkage = *linkage_;
  if (queue_ != nullptr) stop_watching();
  if (binding_->forgotten()) {  // a forked child does not own the call
    linkage_ = nullptr;
    return;
  }
  if (binding_->remote()) {  // the network domain has a copy of its own
    binding_->remote_path()->drop(linkage);
    quarantine_if_let_go();
    return put_back();
  }
  if (linkage.astack.tail != nullptr) binding_->note_tail_use();  // the procedure may write results there
  // Only after the return may the A-stack be reused (T16); until then it stays in quarantine.
  (void)shim::abandon(*linkage.astack.head, linkage.generation());
  if (const InlineServer& server = binding_->inline_server(); server.serve != nullptr && !binding_->revoked())
    server.serve(server.server, linkage.index);  // no other thread declines it
  linkage.quarantined = !shim::load_word(*linkage.astack.head).returns(called_);
  quarantine_if_let_go();
  put_back();
}

void PendingCall::leave_rung() noexcept {
  (void)execute_here();
  LinkageRecord& linkage = *std::exchange(linkage_, nullptr);
  forget_limits(linkage);
  binding_->quarantine(linkage);
}

}  // namespace lrpc::client
