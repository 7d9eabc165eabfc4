#include "interrupt.h"

#include <poll.h>
#include <time.h>

namespace lrpc::bench {
namespace {

volatile sig_atomic_t caught = 0;

void note_signal(int /*signal*/) { caught = 1; }

sigset_t held_back() noexcept {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

void catch_interrupts() noexcept {
  struct sigaction action {};
  action.sa_handler = note_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  const sigset_t signals = held_back();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
}

bool interrupted() noexcept {
  if (caught != 0) return true;
  // Outside waits the signals are blocked, so one may be pending.
  sigset_t pending;
  if (::sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1))
    caught = 1;
  return caught != 0;
}

sigset_t mask_in_waits() noexcept {
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, nullptr, &mask);
  sigdelset(&mask, SIGINT);
  sigdelset(&mask, SIGTERM);
  return mask;
}

void interruptible_sleep(std::chrono::nanoseconds time) noexcept {
  if (interrupted()) return;  // a signal that ended an earlier sleep is no longer pending, and would not end this one
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec limit{seconds.count(), (time - seconds).count()};
  const sigset_t mask = mask_in_waits();
  ::ppoll(nullptr, 0, &limit, &mask);
}

void forget_interrupts_in_child() noexcept {
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
  const sigset_t signals = held_back();
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace lrpc::bench
