#include "netrpc/composite/calls.h"

#include <utility>

#include "netrpc/composite/composite.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

// ---- the server's side ----

RequestSession::RequestSession(Framework& framework, ItemRef request) noexcept
    : Session(framework, request->session()->high(), request->session()->participants()),
      framework_(framework),
      request_(std::move(request)),
      lower_(request_->session()) {}

void RequestSession::reply(Message message) noexcept {
  if (const ItemRef request = std::exchange(request_, {})) (void)framework_.reply(request, std::move(message));
}

Errc RequestSession::push(Message message) noexcept {
  if (framework_.style() != CallStyle::push || !request_) return Errc::not_supported;
  const ItemRef request = std::exchange(request_, {});
  const Errc outcome = framework_.reply(request, std::move(message));
  if (outcome == Errc::limit_reached) request_ = request;
  return outcome;
}

Errc RequestSession::control(control::Request& request) noexcept {
  if (control::answered(request, control::Wanted{request_ && !request_->is_orphan()})) return Errc::ok;
  return lower_->control(request);
}

// ---- the client's side ----

Calls::Calls(Host& host, Events& events, CallId first) noexcept
    : host_(host),
      events_(events),
      ended_(*events.find(kCallEnded)),
      timed_out_(*events.find<CallId>(".Timeout")),
      last_(first) {
  events.find<CallId>(".Timeout")->add([this](CallId call) { end(call, Errc::call_aborted, {}); }, nullptr);
}

CallId Calls::begin(Session& session, Transaction* user, Duration timeout) noexcept {
  if (++last_ == 0) ++last_;
  const CallId call = last_;
  const bool begun = attempt([&] {
    if (user != nullptr) by_user_.bind(user, call);
    calls_.bind(call, {user, SessionRef(&session)});
  });
  if (!begun) by_user_.unbind(user);
  if (begun && (timeout == kNoLimit || bound(call, timeout))) return call;
  (void)take(call);
  return 0;
}

bool Calls::bound(CallId call, Duration limit) noexcept {
  Call* const known = calls_.resolve(call);
  const Time now = host_.now();
  const Time due = limit < Time::max() - now ? now + limit : Time::max();
  if (known == nullptr || known->due <= due) return true;
  const Events::TimerId timer = events_.set_timer(timed_out_, limit, Repeat::once, call);
  if (timer == 0) return false;
  events_.cancel_timer(std::exchange(known->timer, timer));
  known->due = due;
  return true;
}

Calls::Call Calls::take(CallId call) noexcept {
  Call* const known = calls_.resolve(call);
  if (known == nullptr) return {};
  Call taken = std::move(*known);
  calls_.unbind(call);
  by_user_.unbind(taken.user);
  events_.cancel_timer(taken.timer);
  return taken;
}

void Calls::end(CallId call, Errc outcome, Message reply) noexcept {
  const Call ended = take(call);
  if (!ended.session) return;
  if (ended.user != nullptr) {
    const Events::Outside outside(events_);
    if (collate) collate(call, *ended.user, reply);
    ended.user->completed(outcome, std::move(reply));
  } else if (outcome != Errc::ok) {
    const Events::Outside outside(events_);
    control::Request failed = control::PushFailed{ended.session->peer(), outcome};
    (void)ended.session->high().control(failed);
  }
  events_.raise(ended_, Raise::asynchronous, call);  // last: a handler may end other calls, which come after this one
}

}  // namespace lrpc::netrpc::composite
