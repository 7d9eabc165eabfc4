// A client process that does something when it is its turn, and otherwise sleeps on a futex.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "child.h"
#include "lrpc/detail/shim/result.h"
#include "store.h"

namespace lrpc::bench {

/// What such a process shares with the bench. It lies in Shared, together with the data of a turn.
class TurnDesk {
 public:
  /// Called by the process: its turn is over.
  void end_turn(const Status& outcome) noexcept;
  /// Called by the process: reports `ready` as its first turn, then runs `body` once for each later turn.
  [[noreturn]] int serve(const Status& ready, const std::function<Status()>& body) noexcept;

  /// Called by the bench: begins the next turn. Precondition: the last one is over.
  void begin() noexcept;
  /// Whether the latest turn is over; until begin() is called, that is the process's first turn.
  [[nodiscard]] bool over() const noexcept {
    return done_.load(std::memory_order_acquire) == begun_.load(std::memory_order_relaxed) + 1;
  }
  /// Called by the bench: await_turns() for this desk alone.
  Status await(std::chrono::nanoseconds patience = std::chrono::minutes(4));
  /// The first error of any turn: call_failed.
  [[nodiscard]] Status health() const;

 private:
  std::atomic<std::uint32_t> begun_;  ///< Turns that the bench began; the first turn is not one of them.
  std::atomic<std::uint32_t> done_;
  SharedError failure_;
};

/// Called by the bench: waits until all turns are over. Sleeps for `at_least` first, so as not to be a load itself,
/// then looks every half millisecond, for at most `patience`. Errors: call_aborted (Ctrl-C), timed_out, and the error
/// of a turn.
Status await_turns(std::span<TurnDesk* const> desks, std::chrono::nanoseconds at_least,
                   std::chrono::nanoseconds patience = std::chrono::minutes(4));

/// Such a process and its Desk: a struct with a member `TurnDesk turns`, valid when zeroed, as Shared requires.
/// Move-only.
template <class Desk>
class TurnTaker {
 public:
  /// Forks the process and does not wait for it. Its first turn is `connect()`, each later one `turn(desk)`. Both
  /// return a Status.
  template <class Connect, class Turn>
  static Result<TurnTaker> start(std::string_view name, const Seat& seat, Connect&& connect, Turn&& turn) {
    auto desk = Shared<Desk>::create();
    if (!desk) return desk.error();
    TurnTaker taker(*std::move(desk));
    TurnDesk& turns = taker->turns;
    const auto serve = [&] { return turns.serve(connect(), [&] { return turn(*taker); }); };
    if (Status up = store(taker.process_, Child::spawn(name, seat, serve)); !up) return up.error();
    return taker;
  }

  Desk* operator->() const noexcept { return &*desk_; }
  Desk& operator*() const noexcept { return *desk_; }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }

 private:
  explicit TurnTaker(Shared<Desk> desk) noexcept : desk_(std::move(desk)) {}
  Shared<Desk> desk_;
  Child process_;  // destroyed first
};

}  // namespace lrpc::bench
