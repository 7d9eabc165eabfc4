#include "third_party.h"

#include <time.h>

#include <algorithm>

#include "compiler.h"
#include "core/store.h"
#include "core/ticks.h"

namespace lrpc::bench {
namespace {

constexpr std::int64_t kPeriodNs = 1'000'000;
constexpr std::int64_t kWorkNs = 200'000;

std::int64_t now_ns() noexcept { return static_cast<std::int64_t>(clock_ns(CLOCK_MONOTONIC)); }

void compute(std::uint64_t turns) noexcept {
  volatile std::uint64_t turn = 0;
  while (turn < turns) turn = turn + 1;
}

/// How many turns take kWorkNs. The quickest of several tries is the least disturbed one.
std::uint64_t calibrate() noexcept {
  constexpr std::uint64_t kTurns = 100'000;
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t begun = now_ns();
    compute(kTurns);
    best = std::min(best, now_ns() - begun);
  }
  return kTurns * static_cast<std::uint64_t>(kWorkNs) / static_cast<std::uint64_t>(std::max<std::int64_t>(best, 1));
}

}  // namespace

Result<ThirdParty> ThirdParty::create() {
  auto desk = Shared<Desk>::create();
  if (!desk) return desk.error();
  ThirdParty self(std::move(*desk));
  self.open_book(kBooks);
  return self;
}

Result<ThirdParty> ThirdParty::start(const Seat& seat) {
  auto self = create();
  if (!self) return self;
  const std::uint64_t turns = calibrate();
  const auto work = [&]() -> int { work_periodically(turns, *self->desk_); };
  if (Status up = store(self->process_, Child::spawn("bench-third", seat, work)); !up) return up.error();
  return self;
}

Result<ThirdParty> ThirdParty::start_build(const Seat& seat) {
  auto self = create();
  if (!self) return self;
  const auto compiler = Compiler::create();
  if (!compiler) return compiler.error();
  if (Status tried = compiler->compile(); !tried) return tried.error();
  const auto build = [&] {
    while (note(*self->desk_, now_ns(), [&] { return compiler->compile().has_value(); })) {
    }
    return 1;
  };
  if (Status up = store(self->process_, Child::spawn_leader("bench-build", seat, build)); !up) return up.error();
  return self;
}

template <class Work>
bool ThirdParty::note(Desk& desk, std::int64_t due, Work&& work) {
  const std::size_t book = desk.book.load(std::memory_order_acquire);
  const bool done = work();
  const std::int64_t took = now_ns() - due;
  // A piece of work during which the book changed belongs to neither book.
  if (book < kBooks && book == desk.book.load(std::memory_order_acquire))
    desk.books[book].add(static_cast<std::uint64_t>(took));
  return done;
}

void ThirdParty::work_periodically(std::uint64_t turns, Desk& desk) noexcept {
  for (std::int64_t due = now_ns() + kPeriodNs;; due += kPeriodNs) {
    due = std::max(due, now_ns() - kPeriodNs);  // after a long delay it does not catch up on missed periods
    const timespec at{due / 1'000'000'000, due % 1'000'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
    note(desk, due, [turns] {
      compute(turns);
      return true;
    });
  }
}

}  // namespace lrpc::bench
