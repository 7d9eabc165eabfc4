#include "throughput.h"

namespace lrpc::bench {

Result<std::unique_ptr<Caller>> Caller::create(std::unique_ptr<Contender> contender, const Seat& seat,
                                               const TickClock& clock) {
  auto process = TurnTaker<Desk>::start(
      "bench-client", seat, [&] { return contender->connect(); },
      [&](Desk& desk) {
        call(*contender, clock, desk);
        return contender->health();
      });
  if (!process) return process.error();
  if (auto connected = (*process)->turns.await(); !connected) return connected.error();
  return std::unique_ptr<Caller>(new Caller(std::move(contender), *std::move(process)));
}

void Caller::call(Contender& contender, const TickClock& clock, Desk& desk) {
  constexpr std::uint64_t kBetweenLooks = 16;
  const auto for_ticks = [&](std::uint64_t limit) {
    desk.calls = 0;
    const std::uint64_t begun = ticks_begin();
    do {
      contender.run(kBetweenLooks);
      desk.calls += kBetweenLooks;
      desk.ticks = ticks_end() - begun;
    } while (desk.ticks < limit);
  };
  contender.resume();
  for_ticks(clock.ticks(desk.length / 10));  // untimed, until all callers are calling
  for_ticks(clock.ticks(desk.length));
  contender.pause();
}

Result<double> Caller::rate(std::span<Caller* const> callers, std::chrono::nanoseconds length, const TickClock& clock) {
  std::vector<TurnDesk*> desks;
  for (Caller* const caller : callers) {
    caller->process_->length = length;
    desks.push_back(&caller->process_->turns);
  }
  for (TurnDesk* const desk : desks) desk->begin();
  if (auto done = await_turns(desks, length); !done) return done.error();
  double sum = 0;
  for (Caller* const caller : callers)
    sum += static_cast<double>(caller->process_->calls) / (clock.ns(caller->process_->ticks) / 1e9);
  return sum;
}

double scaling(const Rates& rates, std::size_t callers) noexcept {
  return rates.together / (static_cast<double>(callers) * rates.alone);
}

std::vector<std::size_t> client_counts(std::size_t most) {
  std::vector<std::size_t> counts;
  for (std::size_t n = 1; n < most; n *= 2) counts.push_back(n);
  if (most > 0) counts.push_back(most);
  return counts;
}

}  // namespace lrpc::bench
