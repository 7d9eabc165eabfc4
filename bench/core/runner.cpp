#include "runner.h"

#include <algorithm>

namespace lrpc::bench {

PairedRun::PairedRun(Seated call, Seated floor, const TickClock& clock, const RunnerOptions& options)
    : call_{call.contender, call.client}, floor_{floor.contender, floor.client}, clock_(clock), options_(options) {}

void PairedRun::start() {
  first_warm_up(call_);
  size_blocks(call_);
  call_.contender.pause();
  sit(floor_.client);
  floor_.contender.resume();
  size_blocks(floor_);
  floor_.contender.pause();
  ticks_.resize(std::min(call_.single_calls, options_.most_singles));
  floor_block();
}

std::chrono::duration<double> PairedRun::step() {
  enter(call_);
  const double ns = timed_block(call_);
  call_.contender.run_single(ticks_);
  call_.contender.pause();

  samples_.call_blocks.push_back(ns / static_cast<double>(call_.block_calls));
  for (const std::uint64_t ticks : ticks_)
    samples_.single_calls.push_back(clock_.ns(ticks - std::min(ticks, clock_.overhead())));
  samples_.calls += call_.block_calls + ticks_.size();
  floor_block();
  return std::chrono::duration<double, std::nano>(ns);
}

void PairedRun::floor_block() {
  enter(floor_);
  samples_.floor_blocks.push_back(timed_block(floor_) / static_cast<double>(floor_.block_calls));
  floor_.contender.pause();
}

void PairedRun::enter(Side& side) {
  sit(side.client);
  side.contender.resume();
  side.contender.run(side.warm_up_calls);
}

double PairedRun::timed_block(Side& side) {
  return clock_.ns(ticks_of([&] { side.contender.run(side.block_calls); }));
}

void PairedRun::first_warm_up(Side& side) {
  sit(side.client);
  side.contender.resume();
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t done = 0; done < options_.first_warm_up_calls; done += 100) {
    side.contender.run(100);
    if (std::chrono::steady_clock::now() - start > options_.first_warm_up) break;
  }
}

void PairedRun::size_blocks(Side& side) {
  const double target_ns = std::chrono::duration<double, std::nano>(options_.block).count();
  double per_call = 0;
  side.block_calls = 1;
  for (;;) {  // until the block is long enough to tell how long one call takes; the best of three is an undisturbed one
    const double ns = std::min({timed_block(side), timed_block(side), timed_block(side)});
    per_call = ns / static_cast<double>(side.block_calls);
    if (ns >= target_ns / 4) break;
    side.block_calls *= 2;
  }
  const auto calls_in = [&](std::chrono::microseconds time) {
    const double ns = std::chrono::duration<double, std::nano>(time).count();
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(ns / per_call));
  };
  side.block_calls = calls_in(options_.block);
  side.warm_up_calls = calls_in(options_.warm_up);
  side.single_calls = calls_in(options_.singles);
}

}  // namespace lrpc::bench
