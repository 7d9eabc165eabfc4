// What the slow halves of synchronous and of started calls share (transfer.cpp).
#pragma once

#include <chrono>
#include <cstdint>

#include "lrpc/detail/client/call/call.h"

namespace lrpc::client {

[[nodiscard]] constexpr std::uint16_t failed(Errc code) noexcept {
  return static_cast<std::uint16_t>(shim::call_status::kFailed | static_cast<std::uint16_t>(code));
}

/// How to wait for the call that is to be rung on `linkage` next; `may_yield`: see CallerPolicy::choose().
[[nodiscard]] shim::CallerPolicy::Way choose_way(const BindingObject& binding, shim::LinkageRecord& linkage,
                                                 bool may_yield) noexcept;

/// T4: wakes the A-stack's E-stack if it may sleep. If the hint says that none is associated, rings the bell.
void wake_estack(BindingObject& binding, shim::LinkageRecord& linkage) noexcept;

class Waiting;

/// T3: one sleep on the call's word, at most `limit`, that ends also when one of the cancellations comes (T19).
shim::Wake sleep_for_return(const BindingObject& binding, shim::LinkageRecord& linkage, const Waiting& waiting,
                            std::chrono::nanoseconds limit) noexcept;

/// 5 · sleeps until the rung call has returned, its deadline has passed or the server is gone. Returns the call
/// status; marks the linkage quarantined if the A-stack must not go back. `lent`: a guest has the call, so the E-stack
/// has not been woken; it is woken after kLendMicroseconds (H13).
[[nodiscard]] std::uint16_t sleep_until_returned(BindingObject& binding, shim::LinkageRecord& linkage,
                                                 bool lent = false) noexcept;

/// 4 and 5 · the trap gate (transfer_trap.cpp): rings and traps; returns the call status. `rung`: the word already
/// says CALLED.
std::uint16_t transfer_trap(BindingObject& binding, shim::LinkageRecord& linkage, shim::CallWord called,
                            bool rung) noexcept;

}  // namespace lrpc::client
