// What the storm says at its end.
#include <cinttypes>
#include <cstdio>

#include "conductor.h"

namespace lrpc::storm {
namespace {

unsigned long long wide(std::uint64_t number) { return number; }

}  // namespace

void Conductor::report(std::uint64_t began) const {
  const double seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  std::printf("\n%-18s %9s %9s %9s %9s %9s %9s %9s %9s\n", "step", "adaptive", "exchange", "handoff", "sleep", "trap",
              "servers", "killed", "held");
  std::size_t missed = 0;
  std::uint64_t hits = 0;
  for (std::size_t i = 0; i < debugger_.steps().size(); ++i) {
    const Debugger::Counts& counts = debugger_.counts()[i];
    std::printf("%-18s", debugger_.steps()[i].name.c_str());
    std::uint64_t sum = 0;
    for (const std::uint64_t of_column : counts.hits) {
      std::printf(" %9llu", wide(of_column));
      sum += of_column;
    }
    std::printf(" %9llu %9llu%s\n", wide(counts.kills), wide(counts.holds), sum == 0 ? "   not hit" : "");
    missed += sum == 0;
    hits += sum;
  }
  std::printf("\n%u rounds in %.1f s, seed %" PRIu64 ": %llu processes started.\n", round_, seconds, options_.seed,
              wide(spawned_));
  std::printf(
      "%llu killed: %llu by SIGKILL (%llu of them at a step), %llu aborted, %llu by SIGTERM, lrpcd %llu times; "
      "%llu ended by themselves, %llu were stopped for a while.\n",
      wide(kills_.all()), wide(kills_.killed), wide(debugger_.kills()), wide(kills_.aborted), wide(kills_.terminated),
      wide(kills_.nameservers), wide(kills_.own_end), wide(kills_.stopped));
  std::printf(
      "%llu calls: %llu answered, %llu failed, aborted or refused, the others' callers died; %llu executions.\n",
      wide(calls_audited_), wide(ledger().answered.load()), wide(ledger().failed.load()), wide(executed_));
  std::printf("%zu steps, %llu hits, %zu steps not hit.\n", debugger_.steps().size(), wide(hits), missed);
  if (wrongs_ == 0) {
    std::printf("Nothing was wrong.\n");
  } else {
    std::printf("%llu things were WRONG. Logs: %s\nTo repeat: %s\n", wide(wrongs_), options_.directory.c_str(),
                options_.repeat.c_str());
  }
  std::fflush(stdout);
}

}  // namespace lrpc::storm
