#include "trap_server.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "call/call_path.h"
#include "call/stack.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/step.h"

namespace lrpc::server {

Status TrapServer::adopt(const std::shared_ptr<ServedBinding>& binding, UniqueFd offered) {
  if (binding->gate() != shim::Gate::trap)
    return Error{Errc::not_permitted, "the binding was not imported for the trap gate"};
  auto traps = shim::TrapListener::take(std::move(offered));
  if (!traps) return traps.error();
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return system_error("eventfd", errno);

  const uid_t user = binding->user();
  accounts_->settle_ended(user);
  std::lock_guard lock(mutex_);
  if (stop_ || binding->revoked()) return Errc::binding_revoked;
  const bool has_one = std::ranges::any_of(listeners_, [&](const auto& one) { return one->binding == binding; });
  if (has_one) return Error{Errc::limit_reached, "the binding has its listener"};
  if (Status room = accounts_->room(user, kDescriptors, /*promised=*/true); !room) return room;
  if (Status room = accounts_->room(kThread); !room) return room;
  if (Status room = accounts_->room(user, kThread); !room) return room;
  auto listener = std::make_shared<Listener>(*this, binding, *std::move(traps), std::move(wake),
                                             accounts_->take(user, kThread), accounts_->take(user, kDescriptors));
  // The thread gets a shared_ptr of its own, by way of the heap: it must outlive this function's.
  auto hold = std::make_unique<std::shared_ptr<Listener>>(listener);
  std::list<std::shared_ptr<Listener>> made;
  made.push_back(listener);
  const auto thread = procedure_thread("lrpc-trap", options_.estack_size);
  if (Status started = listener->thread.start(thread, &TrapServer::thread_main, hold.get()); !started) return started;
  (void)hold.release();
  listeners_.splice(listeners_.end(), made);
  return {};
}

void* TrapServer::thread_main(void* argument) {
  const std::unique_ptr<std::shared_ptr<Listener>> hold(static_cast<std::shared_ptr<Listener>*>(argument));
  (*hold)->server.run(*hold);
  return nullptr;
}

bool TrapServer::receive(Listener& listener, shim::Trap& trap) noexcept {
  // A Dekker pair with end(): either this sees `ending`, or abandon_locked() sees `receiving`.
  listener.state.store(State::receiving, std::memory_order_seq_cst);
  const bool received = !listener.ending.load(std::memory_order_seq_cst) && listener.traps.receive(trap);
  State expected = State::receiving;
  (void)listener.state.compare_exchange_strong(expected, State::serving, std::memory_order_acq_rel);
  return received;
}

/// The check ladder of the registers, then the common call path. Returns the errno that the trap fails with, or 0.
int TrapServer::serve_trap(Listener& listener, const shim::Trap& trap) noexcept {
  ServedBinding& binding = *listener.binding;
  // The caller, by the kernel's word, must be the process that was bound, and no child of it that shares its filter.
  if (trap.pid != binding.client().pid || trap.number != shim::kTrapNumber) return EPERM;
  const shim::TrapRegisters& registers = trap.registers;
  if (registers.binding != shim::in_registers(binding.nonce()) || registers.astack >= binding.astacks().size())
    return EINVAL;
  LRPC_STEP("server c trap");
  ServedAStack& astack = binding.astacks()[registers.astack];
  if (registers.generation != astack.linkage.next_generation())
    return 0;  // executed already: the word says how it went
  const shim::CallWord word = shim::load_word(*astack.head);
  if (!word.is(shim::Turn::called, registers.generation) || word.procedure() != registers.procedure) return EINVAL;
  (void)serve(astack, listener.context);
  return 0;
}

void TrapServer::run(const std::shared_ptr<Listener>& listener) {
  ServedBinding* const binding = listener->binding.get();
  (void)schedule_as_exported(binding->interface());
  shim::Trap trap;
  while (!binding->revoked() && listener->traps.wait(listener->wake.get(), binding->client_pidfd())) {
    const bool received = receive(*listener, trap);
    // If this thread is abandoned, the server and the binding may be gone: it must touch neither.
    if (listener->state.load(std::memory_order_acquire) == State::abandoned) return;
    if (!received) continue;
    const int error = serve_trap(*listener, trap);
    if (error != 0) refused_.fetch_add(1, std::memory_order_relaxed);
    listener->traps.answer(trap, error);
  }
  listener->traps.close();              // a caller that still waits returns with call_failed
  std::shared_ptr<ServedBinding> last;  // released after the lock (it may unmap), before stop() may return
  {
    std::lock_guard lock(mutex_);
    last.swap(listener->binding);
  }
  last.reset();
  shim::Thread before;
  {
    std::lock_guard lock(mutex_);
    listener->share.give();
    before = std::exchange(last_to_end_, std::move(listener->thread));
    std::erase(listeners_, listener);
    ended_.notify_all();
  }
  before.join();
}

/// Abandons threads that are in receive(). Such a thread waits for ever if the client has taken its trap; if it does
/// return, it finds that it is abandoned. `of`: only the threads of that binding; null: all.
void TrapServer::abandon_locked(const ServedBinding* of, Abandoned& abandoned) noexcept {
  for (auto at = listeners_.begin(); at != listeners_.end();) {
    const auto one = at++;
    if (of != nullptr && (*one)->binding.get() != of) continue;
    State expected = State::receiving;
    if (!(*one)->state.compare_exchange_strong(expected, State::abandoned, std::memory_order_seq_cst)) continue;
    (*one)->thread.detach();
    abandoned.listeners.splice(abandoned.listeners.end(), listeners_, one);
  }
}

void TrapServer::end(const ServedBinding& binding) noexcept {
  Abandoned abandoned;  // released after the lock
  std::lock_guard lock(mutex_);
  for (const auto& listener : listeners_) {
    if (listener->binding.get() == &binding) listener->tell_to_end();
  }
  abandon_locked(&binding, abandoned);
}

void TrapServer::stop() {
  Abandoned abandoned;  // released after the lock
  std::unique_lock lock(mutex_);
  stop_ = true;
  for (const auto& listener : listeners_) listener->tell_to_end();
  while (!ended_.wait_for(lock, shim::kBoundedSleep, [&] { return listeners_.empty(); }))
    abandon_locked(nullptr, abandoned);
  shim::Thread last_thread = std::move(last_to_end_);
  lock.unlock();
  last_thread.join();
}

bool TrapServer::runs_here() const {
  std::lock_guard lock(mutex_);
  return last_to_end_.is_this() ||
         std::ranges::any_of(listeners_, [](const auto& listener) { return listener->thread.is_this(); });
}

void TrapServer::count(ServerStatistics& counted) const {
  std::lock_guard lock(mutex_);
  counted.trap_listeners = listeners_.size();
  counted.traps_refused = refused_.load(std::memory_order_relaxed);
}

}  // namespace lrpc::server
