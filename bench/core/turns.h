// A client process that does something whenever it is its turn, and sleeps on a futex otherwise.
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

namespace lrpc::bench {

/// What such a process shares with the bench; lies in Shared, together with whatever a turn needs.
class TurnDesk {
 public:
  /// In the process: its turn is over.
  void end_turn(const Status& outcome) noexcept;
  /// In the process: reports `ready` as its first turn, and runs `body` once for each that follows.
  [[noreturn]] int serve(const Status& ready, const std::function<Status()>& body) noexcept;

  /// In the bench: begins the next turn. Precondition: the last one is over.
  void begin() noexcept;
  /// Whether the turn that was begun last is over; before any was begun: the first.
  [[nodiscard]] bool over() const noexcept {
    return done_.load(std::memory_order_acquire) == begun_.load(std::memory_order_relaxed) + 1;
  }
  /// In the bench: as await_turns().
  Status await(std::chrono::nanoseconds patience = std::chrono::minutes(4));
  /// The first error of any turn: call_failed.
  [[nodiscard]] Status health() const;

 private:
  std::atomic<std::uint32_t> begun_;  ///< By the bench: the first turn is not.
  std::atomic<std::uint32_t> done_;
  SharedError failure_;
};

/// In the bench: waits until all turns are over. Sleeps for `at_least` first, so as not to be a load itself, then looks
/// every half millisecond; gives up `patience` later. Errors: call_aborted (Ctrl-C), timed_out, and what a turn
/// reports.
Status await_turns(std::span<TurnDesk* const> desks, std::chrono::nanoseconds at_least,
                   std::chrono::nanoseconds patience = std::chrono::minutes(4));

/// Such a process, and its Desk: a struct with a TurnDesk `turns`, otherwise as Shared's T. Move-only.
template <class Desk>
class TurnTaker {
 public:
  /// Forks it, and does not wait for it: its first turn is `connect()`, each that follows `turn(desk)`. Both return a
  /// Status.
  template <class Connect, class Turn>
  static Result<TurnTaker> start(std::string_view name, const Seat& seat, Connect&& connect, Turn&& turn) {
    auto desk = Shared<Desk>::create();
    if (!desk) return desk.error();
    TurnTaker taker(*std::move(desk));
    TurnDesk& turns = taker->turns;
    auto process = Child::spawn(name, seat, [&] { return turns.serve(connect(), [&] { return turn(*taker); }); });
    if (!process) return process.error();
    taker.process_ = *std::move(process);
    return taker;
  }

  Desk* operator->() const noexcept { return &*desk_; }
  Desk& operator*() const noexcept { return *desk_; }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }

 private:
  explicit TurnTaker(Shared<Desk> desk) noexcept : desk_(std::move(desk)) {}
  Shared<Desk> desk_;
  Child process_;  // goes first
};

}  // namespace lrpc::bench
