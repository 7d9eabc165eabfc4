// Ctrl-C and SIGTERM end the bench in an orderly way: children gone, temporary files removed, JSON lines whole.
#pragma once

#include <signal.h>

#include <chrono>

namespace lrpc::bench {

/// From now on the two signals are held back everywhere but in waits.
void catch_interrupts() noexcept;
/// Whether one has come.
[[nodiscard]] bool interrupted() noexcept;
/// The signal mask for ppoll(2) in waits: lets them in.
[[nodiscard]] sigset_t mask_in_waits() noexcept;
/// Sleeps in the bench's own process, at most until one of the signals comes; not at all once one has come.
void interruptible_sleep(std::chrono::nanoseconds time) noexcept;
/// In a child process: as if catch_interrupts() had never been called, but Ctrl-C is left to the bench, which takes its
/// children with it.
void forget_interrupts_in_child() noexcept;

}  // namespace lrpc::bench
