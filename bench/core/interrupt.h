// Ctrl-C and SIGTERM end the bench in order: it kills its children, removes temporary files and completes JSON lines.
#pragma once

#include <signal.h>

#include <chrono>

namespace lrpc::bench {

/// Blocks the two signals from now on, except in waits.
void catch_interrupts() noexcept;
/// Whether one of the signals has arrived.
[[nodiscard]] bool interrupted() noexcept;
/// The signal mask for ppoll(2) in waits: it does not block the two signals.
[[nodiscard]] sigset_t mask_in_waits() noexcept;
/// Sleeps in the bench's own process for `time`, or until one of the signals arrives; returns at once if one already
/// has.
void interruptible_sleep(std::chrono::nanoseconds time) noexcept;
/// Call it in a child process. Undoes catch_interrupts(), but ignores SIGINT: after Ctrl-C the bench kills its children
/// itself.
void forget_interrupts_in_child() noexcept;

}  // namespace lrpc::bench
