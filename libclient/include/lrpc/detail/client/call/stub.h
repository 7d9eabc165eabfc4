// The part of the call stubs (LRPC §3.3) that all procedures share: the client's steps of a call, in their order,
// numbered as in docs/ARCHITECTURE.md. The rest is generated: a class P for each procedure, with the members
//   Result_                          what the stub returns
//   kProcedure_                      a CallSite
//   check_(arguments...) -> Refusal  only where an argument may be refused
//   push_(image, tail, arguments...) step 3; only with arguments
//   operator()(status, call)         step 6: takes the results; P's data members point to the caller's objects for
//                                    those that are passed by reference
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "lrpc/detail/client/call/call.h"
#include "lrpc/detail/client/call/pending.h"
#include "lrpc/detail/client/call/remote_call.h"
#include "lrpc/detail/shim/call/declared_errors.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::client {

struct CallSite {
  std::uint16_t procedure = 0;
  std::uint16_t astack_class = 0;
  bool tail = false;       ///< An argument may lie in the A-stack's tail.
  bool may_block = false;  ///< The procedure may block, so no poller serves it.
};

/// Says that an argument does not conform to its declared type: the call is not made.
struct Refusal {
  Errc code = Errc::ok;
  const char* what = nullptr;  ///< In static storage. Null: no refusal.
};

/// How an argument is passed to a function that is not inlined: small ones by value, so that they can stay in
/// registers.
template <class A>
using Handed = std::conditional_t<std::is_trivially_copyable_v<A> && sizeof(A) <= 16, A, const A&>;

/// What start() and all() of a client return. For one call; do not keep it, because the client may be destroyed or
/// replaced. Derived classes are generated, so this name is one that no declaration in an interface file can have.
class ForOneCall_ {
 public:
  explicit ForOneCall_(BindingObject& object) noexcept : object_(object) {}
  ForOneCall_(const ForOneCall_&) = delete;
  ForOneCall_& operator=(const ForOneCall_&) = delete;

 protected:
  ~ForOneCall_() = default;
  BindingObject& object_;
};

/// Makes a client from the result of Binding::import().
template <class Client, class Bound>
[[nodiscard]] lrpc::Result<Client> client_of(Bound bound) {
  if (!bound) return bound.error();
  return Client(std::move(*bound));
}

/// Tests only whether P has check_, not whether it accepts the arguments. So wrong arguments are a compiler error, and
/// not a call without a check.
template <class P, class... A>
[[gnu::always_inline]] inline Refusal check_arguments(const A&... arguments) noexcept {
  if constexpr (requires { &P::check_; }) {
    return P::check_(arguments...);
  } else {
    return {};
  }
}

/// 3 · push the arguments.
template <class P, class OneCall, class... A>
[[gnu::always_inline]] inline void push_arguments(const OneCall& call, const A&... arguments) noexcept {
  if constexpr (sizeof...(A) != 0) P::push_(call.image(), P::kProcedure_.tail ? call.tail() : nullptr, arguments...);
}

/// 6 · for a call without results: the declared error, by its codec in `get` (in the order of the declaration), or the
/// failure. Inlined, as Call::failure() is.
template <class Result, class OneCall, class... Get>
[[gnu::always_inline]] inline Result no_results(const OneCall& call, std::uint16_t status, const char* procedure,
                                                std::span<const ImageRange> places, Get... get) noexcept {
  if (status <= sizeof...(get))
    return lrpc::detail::get_declared_error(std::type_identity<Result>{}, status, call.image(), places, get...);
  return call.failure(status, procedure);
}

/// The remote branch (LRPC §5.1): the same steps, but the network domain carries the arguments: by kCarry, transfer()
/// or send() of RemoteCall. Out of line, so that it costs the local path only one test.
template <class P, auto kCarry, class... A>
[[gnu::cold, gnu::noinline]] typename P::Result_ invoke_remote(BindingObject& object, P results,
                                                               A... arguments) noexcept {
  if (const Refusal refusal = check_arguments<P>(arguments...); refusal.what != nullptr)
    return refused(refusal.code, refusal.what);
  RemoteCall call(object, P::kProcedure_.astack_class);
  if (!call.taken()) return call.error();
  push_arguments<P>(call, arguments...);
  const std::uint16_t status = (call.*kCarry)(P::kProcedure_.procedure);
  return results(status, call);
}

/// A call, from its arguments to its results. Blocks for as long as the procedure runs, at most for what CallScopes and
/// the binding's call_timeout leave.
template <class P, class... A>
[[gnu::always_inline]] inline typename P::Result_ invoke(BindingObject& object, P results,
                                                         const A&... arguments) noexcept {
  // 1: the remote bit (§5.1).
  if (object.remote()) [[unlikely]]
    return invoke_remote<P, &RemoteCall::transfer, Handed<A>...>(object, results, arguments...);
  if (const Refusal refusal = check_arguments<P>(arguments...); refusal.what != nullptr) [[unlikely]]
    return refused(refusal.code, refusal.what);
  // 2: take an A-stack: this thread's own, or the top of the class's LIFO (§3.2).
  Call call(object, P::kProcedure_.astack_class);
  if (!call.taken()) [[unlikely]]
    return call.error();
  // 3: push the arguments.
  push_arguments<P>(call, arguments...);
  // 4, 5: ring, and wait for the return.
  const std::uint16_t status = call.transfer(P::kProcedure_.procedure);
  // 6: copy the results to their destination, checking them (§3.5). 7: ~Call puts the A-stack back on top.
  return results(status, call);
}

/// A call that is finished later: Pending::finish() makes steps 5, 6 and 7. May wait for an A-stack, for nothing else.
template <class P, class... A>
[[gnu::always_inline]] inline Pending<P> start(BindingObject& object, P results, const A&... arguments) noexcept {
  if (const Refusal refusal = check_arguments<P>(arguments...); refusal.what != nullptr) [[unlikely]]
    return {refusal.code, refusal.what};
  PendingCall call(object, P::kProcedure_.astack_class);
  if (!call.taken()) [[unlikely]]
    return call.error();
  push_arguments<P>(call, arguments...);
  if (!call.ring(P::kProcedure_.procedure, P::kProcedure_.may_block)) [[unlikely]]
    return call.error();
  return {std::move(call), results};
}

/// A one-way call: returns after the ring. Nobody waits for the call's return, after which the A-stack is reused.
template <class P, class... A>
[[gnu::always_inline]] inline typename P::Result_ send(BindingObject& object, const A&... arguments) noexcept {
  if (object.remote()) [[unlikely]]
    return invoke_remote<P, &RemoteCall::send, Handed<A>...>(object, P{}, arguments...);
  if (const Refusal refusal = check_arguments<P>(arguments...); refusal.what != nullptr) [[unlikely]]
    return refused(refusal.code, refusal.what);
  PendingCall call(object, P::kProcedure_.astack_class);
  if (!call.taken()) [[unlikely]]
    return call.error();
  push_arguments<P>(call, arguments...);
  if (!call.ring(P::kProcedure_.procedure, P::kProcedure_.may_block)) [[unlikely]]
    return call.error();
  call.leave();
  return {};
}

}  // namespace lrpc::client
