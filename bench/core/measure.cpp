#include "measure.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "child.h"
#include "report/statistics.h"

namespace lrpc::bench {
namespace {

/// Google Benchmark prints nothing, because the tables are ours; the reporter only keeps the error of a failed run.
class SilentReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const auto& run : runs)
      if (run.error_occurred) failure_ = run.error_message;
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
    // Out of time: the remaining turns do nothing. They report the last block's time and yield no sample.
    const auto used = std::chrono::steady_clock::now() - start;
    if (done == 0 || used < (done < options.least_pairs ? options.patience : options.budget)) {
      last = run.step();
      ++done;
    }
    state.SetIterationTime(last.count());
  }
  if (const Status health = call.health(); !health) state.SkipWithError(health.error().message().c_str());
}

Status client(const std::string& name, Seated call, Seated floor, const TickClock& clock, const MeasureOptions& options,
              Figures& figures) {
  for (Contender* contender : {&call.contender, &floor.contender})
    if (Status connected = contender->connect(); !connected) return connected;
  PairedRun run(call, floor, clock, options.runner);
  benchmark::RegisterBenchmark(name.c_str(),
                               [&](benchmark::State& state) { run_pairs(state, run, call.contender, options); })
      ->UseManualTime()
      ->Iterations(options.pairs);
  SilentReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter, ".");
  if (!reporter.failure().empty()) return Error{Errc::call_failed, reporter.failure()};
  figures = boil_down(std::move(run).take());
  return {};
}

}  // namespace

Figures boil_down(const Samples& samples) {
  return {.median = median(samples.call_blocks),
          .p99 = quantile(samples.single_calls, 0.99),
          .min = quantile(samples.single_calls, 0),
          .max = quantile(samples.single_calls, 1),
          .calls = samples.calls,
          .floor = median(samples.floor_blocks),
          .ratio = median(paired_ratios(samples.floor_blocks, samples.call_blocks)),
          .over_floor = median(paired_differences(samples.floor_blocks, samples.call_blocks))};
}

Result<Figures> measure(const std::string& name, Seated call, Seated floor, const TickClock& clock,
                        const MeasureOptions& options) {
  auto figures = Shared<Figures>::create();
  if (!figures) return figures.error();
  const Status ran =
      run_client(call.client, options.limit, [&] { return client(name, call, floor, clock, options, **figures); });
  if (!ran) return ran.error();
  return **figures;
}

}  // namespace lrpc::bench
