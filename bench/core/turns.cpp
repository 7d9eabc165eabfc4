#include "turns.h"

#include "futex.h"
#include "interrupt.h"

namespace lrpc::bench {

void TurnDesk::end_turn(const Status& outcome) noexcept {
  if (!outcome) failure_.set(outcome.error());
  done_.fetch_add(1, std::memory_order_release);
}

int TurnDesk::serve(const Status& ready, const std::function<Status()>& body) noexcept {
  end_turn(ready);
  for (std::uint32_t seen = 0;; ++seen) {
    while (begun_.load(std::memory_order_acquire) == seen) futex_wait(begun_, seen);
    end_turn(body());
  }
}

void TurnDesk::begin() noexcept {
  begun_.fetch_add(1, std::memory_order_release);
  futex_wake(begun_);
}

Status TurnDesk::await(std::chrono::nanoseconds patience) {
  TurnDesk* const self = this;
  return await_turns({&self, 1}, {}, patience);
}

Status TurnDesk::health() const {
  if (const Status failed = failure_.status(); !failed) return Error{Errc::call_failed, failed.error().message()};
  return {};
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
      if (!desk->over() && std::chrono::steady_clock::now() - begun > at_least + patience)
        return Error{Errc::timed_out, "a client did not end its turn in time"};
    }
    if (auto health = desk->health(); !health) return health;
  }
  return {};
}

}  // namespace lrpc::bench
