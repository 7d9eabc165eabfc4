#include "turns.h"

#include <cstdio>

#include "futex.h"
#include "interrupt.h"

namespace lrpc::bench {

int TurnDesk::serve(const Status& ready, const std::function<Status()>& body) noexcept {
  if (!ready) fail(ready.error());
  for (std::uint32_t turn = 0;; ++turn) {
    done_.store(turn + 1, std::memory_order_release);
    while (begun_.load(std::memory_order_acquire) == turn) futex_wait(begun_, turn);
    if (const Status ran = body(); !ran) fail(ran.error());
  }
}

void TurnDesk::begin() noexcept {
  begun_.fetch_add(1, std::memory_order_release);
  futex_wake(begun_);
}

Status TurnDesk::health() const {
  if (!failed_.load(std::memory_order_acquire)) return {};
  return Error{Errc::call_failed, why_};
}

void TurnDesk::fail(const Error& error) noexcept {
  if (failed_.load(std::memory_order_relaxed)) return;
  std::snprintf(why_, sizeof(why_), "%s", error.message().c_str());
  failed_.store(true, std::memory_order_release);
}

Status await_turns(std::span<TurnDesk* const> desks, std::chrono::nanoseconds at_least,
                   std::chrono::nanoseconds patience) {
  const auto begun = std::chrono::steady_clock::now();
  std::chrono::nanoseconds nap = at_least;
  for (TurnDesk* const desk : desks) {
    while (!desk->over()) {
      interruptible_sleep(nap);
      nap = std::chrono::microseconds(500);
      if (interrupted()) return Error{Errc::call_aborted, "was interrupted"};
      if (!desk->over() && std::chrono::steady_clock::now() - begun > at_least + patience) {
        return Error{Errc::timed_out, "a client did not end its turn in time"};
      }
    }
    if (auto health = desk->health(); !health) return health;
  }
  return {};
}

}  // namespace lrpc::bench
