// What the optional eBPF program on sched_switch costs each context switch of the machine.
#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "core/child.h"
#include "processor_watch.h"
#include "report/statistics.h"
#include "session.h"

namespace lrpc::bench {
namespace {

using shim::ProcessorWatch;

/// Blocks of round trips run alternately without and with the program, so that a drift of the machine affects both
/// alike.
constexpr int kRounds = 20;
constexpr std::chrono::milliseconds kBlock{50};
constexpr std::uint64_t kTripsPerLook = 1'000;

struct Samples {
  double without[kRounds];  ///< Nanoseconds a round trip.
  double with[kRounds];
  std::uint64_t runs;
  std::uint64_t nanoseconds;
  bool counted;
};

double block(Contender& floor, const TickClock& clock) {
  std::uint64_t trips = 0;
  const auto until = std::chrono::steady_clock::now() + kBlock;
  floor.resume();
  floor.run(kTripsPerLook);  // warm
  const std::uint64_t before = ticks_begin();
  do {
    floor.run(kTripsPerLook);
    trips += kTripsPerLook;
  } while (std::chrono::steady_clock::now() < until);
  const std::uint64_t ticks = ticks_end() - before;
  floor.pause();
  return clock.ns(ticks) / static_cast<double>(trips);
}

Status measure_rounds(Contender& floor, const TickClock& clock, int rounds, Samples& samples) {
  if (Status ready = floor.connect(); !ready) return ready;
  for (int i = 0; i < rounds; ++i) {
    samples.without[i] = block(floor, clock);
    auto watch = ProcessorWatch::attach();
    if (!watch) return watch.error();
    samples.with[i] = block(floor, clock);
    // The kernel's own count is taken in a separate block, because counting costs time, too.
    auto counting = ProcessorWatch::count_cost();
    if (!counting) continue;
    const auto before = (*watch)->cost();
    (void)block(floor, clock);
    const auto after = (*watch)->cost();
    if (!before || !after) continue;
    samples.counted = true;
    samples.runs += after->runs - before->runs;
    samples.nanoseconds += after->nanoseconds - before->nanoseconds;
  }
  return {};
}

Status run(Session& session) {
  const int rounds = session.quick() ? 4 : kRounds;
  const Seats seats = floor_seats(Floor::yield, session.cores());
  auto floor = make_yield_floor(seats);
  if (!floor) return floor.error();
  auto samples = Shared<Samples>::create();
  if (!samples) return samples.error();
  Status ran = run_client(seats.client, std::chrono::minutes(2), [&]() -> Status {
    const Status measured = measure_rounds(**floor, session.clock(), rounds, **samples);
    if (!measured) return Error{Errc::not_supported, measured.error().message()};
    return {};
  });
  if (!ran) return ran;
  std::vector<double> without((*samples)->without, (*samples)->without + rounds);
  std::vector<double> with((*samples)->with, (*samples)->with + rounds);
  std::vector<double> added;
  for (std::size_t i = 0; i < without.size(); ++i) added.push_back((with[i] - without[i]) / 2);
  const Table table{{"what", -44}, {"median", 9}, {"min", 9}, {"max", 9}};
  const auto print = [&](std::string what, const std::vector<double>& ns) {
    table.print({std::move(what), number(median(ns)), number(quantile(ns, 0)), number(quantile(ns, 1))});
  };
  print("round trip, two switches, without", without);
  print("round trip, two switches, with the program", with);
  print("added to each switch, paired", added);
  if ((*samples)->counted && (*samples)->runs > 0) {
    const double each = static_cast<double>((*samples)->nanoseconds) / static_cast<double>((*samples)->runs);
    table.print({fmt::format("the kernel's own count, {} runs", (*samples)->runs), number(each)});
  }
  return {};
}

}  // namespace

void bpf_cost(Session& session) {
  print_intro("The eBPF program on sched_switch, ns",
              "Two processes on one core take turns by sched_yield, with and without the program that tells lrpcd "
              "which processors are idle. The kernel's own count is of the program alone, over all processors, "
              "switches to and from idle included.");
  const Status status = run(session);
  if (!status && status.code() == Errc::not_supported) {
    fmt::print("  not measured: {}\n", status.error().message());
  } else if (!status) {
    session.fail(status.error().message());
  }
}

}  // namespace lrpc::bench
