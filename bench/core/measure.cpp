#include "measure.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "child.h"
#include "report/statistics.h"

namespace lrpc::bench {
namespace {

/// How the client process hands its result back.
struct Outcome {
  bool done;
  double median, p99, min, max;
  std::uint64_t calls;
  double floor, ratio, over_floor;
  char failure[512];

  void fail(const std::string& text) noexcept { std::strncpy(failure, text.c_str(), sizeof(failure) - 1); }
  void set(const Figures& figures) noexcept {
    median = figures.median;
    p99 = figures.p99;
    min = figures.min;
    max = figures.max;
    calls = figures.calls;
    floor = figures.floor.value_or(0);
    ratio = figures.ratio.value_or(0);
    over_floor = figures.over_floor.value_or(0);
    done = true;
  }
  [[nodiscard]] Figures get() const noexcept { return {median, p99, min, max, calls, floor, ratio, over_floor}; }
};

/// Google Benchmark prints nothing: the tables are ours. It tells us when a run went wrong.
class SilentReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const auto& run : runs) {
      if (run.error_occurred) failure_ = run.error_message;
    }
  }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

 private:
  std::string failure_;
};

void run_pairs(benchmark::State& state, PairedRun& run, const Contender& call, const MeasureOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  run.start();
  std::chrono::duration<double> last{};
  int done = 0;
  for ([[maybe_unused]] auto turn : state) {
    // Out of time: the turns that are left are not run. They report the last block's time, and yield no sample.
    const auto used = std::chrono::steady_clock::now() - start;
    if (done == 0 || used < (done < options.least_pairs ? options.patience : options.budget)) {
      last = run.step();
      ++done;
    }
    state.SetIterationTime(last.count());
  }
  if (const Status health = call.health(); !health) state.SkipWithError(health.error().message().c_str());
}

void client(const std::string& name, Seated call, Seated floor, const TickClock& clock, const MeasureOptions& options,
            Outcome& outcome) {
  for (Contender* contender : {&call.contender, &floor.contender}) {
    if (const Status connected = contender->connect(); !connected) return outcome.fail(connected.error().message());
  }
  PairedRun run(call, floor, clock, options.runner);
  benchmark::RegisterBenchmark(name.c_str(),
                               [&](benchmark::State& state) { run_pairs(state, run, call.contender, options); })
      ->UseManualTime()
      ->Iterations(options.pairs);
  SilentReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter, ".");
  if (!reporter.failure().empty()) return outcome.fail(reporter.failure());
  outcome.set(boil_down(std::move(run).take()));
}

}  // namespace

Figures boil_down(const Samples& samples) {
  Figures figures;
  figures.median = median(samples.call_blocks);
  figures.p99 = quantile(samples.single_calls, 0.99);
  figures.min = quantile(samples.single_calls, 0);
  figures.max = quantile(samples.single_calls, 1);
  figures.calls = samples.calls;
  figures.floor = median(samples.floor_blocks);
  figures.ratio = median(paired_ratios(samples.floor_blocks, samples.call_blocks));
  figures.over_floor = median(paired_differences(samples.floor_blocks, samples.call_blocks));
  return figures;
}

Result<Figures> measure(const std::string& name, Seated call, Seated floor, const TickClock& clock,
                        const MeasureOptions& options) {
  auto outcome = Shared<Outcome>::create();
  if (!outcome) return outcome.error();
  auto process = Child::spawn("bench-client", call.client, [&] {
    client(name, call, floor, clock, options, **outcome);
    return 0;
  });
  if (!process) return process.error();
  auto ended = process->wait(options.limit);
  if (!ended) return Error{ended.code(), "the client " + ended.error().message()};
  if (!(*outcome)->done) return Error{Errc::call_failed, (*outcome)->failure};
  return (*outcome)->get();
}

}  // namespace lrpc::bench
