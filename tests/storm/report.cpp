// The report at the storm's end.
#include <cinttypes>
#include <cstdio>

#include "conductor.h"

namespace lrpc::storm {
namespace {

unsigned long long wide(std::uint64_t number) { return number; }

/// If the surviving server's pollers executed this many calls, every step of the pollers must have been hit.
constexpr std::uint64_t kManyPolled = 20'000;

/// Why a step may not have been hit although nothing is wrong. Null: there is no reason.
const char* excuse_for(const std::string& step) {
  const bool pollers = step == "client 5" || step == "client 6" || step == "T6 T7" || step == "poller last look";
  if (pollers && ledger().polled.load() < kManyPolled) return "hardly a processor was idle, which pollers need";
  const bool traps = step == "client 5 trap" || step == "server c trap";
  if (traps && ledger().cannot_seal.load()) return "no domain can be sealed here";
  return nullptr;
}

}  // namespace

/// Also checks what only the whole storm shows: enough kills, and every step hit.
void Conductor::report(std::uint64_t began) {
  const double seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  if (wrongs_ == 0 && kills_.all() < options_.least_kills) {
    wrong("%llu were killed, of at least %llu, in %.0f s", wide(kills_.all()), wide(options_.least_kills), seconds);
  }
  std::printf("\n%-18s %9s %9s %9s %9s %9s %9s %9s %9s\n", "step", "adaptive", "exchange", "handoff", "sleep", "trap",
              "servers", "killed", "held");
  // In a minute all steps are hit. A storm that ended early because something was wrong reports only that.
  const bool must_hit = options_.debugger && wrongs_ == 0 && (options_.minutes >= 1 || options_.must_hit);
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
    if (sum != 0 || !must_hit) continue;
    const std::string& name = debugger_.steps()[i].name;
    if (const char* const excuse = excuse_for(name)) {
      std::printf("NOT LOOKED AT: the step %s: %s.\n", name.c_str(), excuse);
    } else {
      wrong("nobody came by the step %s", name.c_str());
    }
  }
  const std::uint64_t cancelled = ledger().cancelled.load();
  const std::uint64_t privately = ledger().private_bindings.load();
  if (must_hit && cancelled == 0) wrong("no call was cancelled");
  if (must_hit && privately == 0) wrong("no binding was private");
  std::printf("\n%u rounds in %.1f s, seed %" PRIu64 ": %llu processes started.\n", round_, seconds, options_.seed,
              wide(spawned_));
  std::printf(
      "%llu killed: %llu by SIGKILL (%llu of them at a step), %llu aborted, %llu by SIGTERM, daemons %llu times. No "
      "kills: "
      "%llu ended when SIGTERM asked them to, %llu by themselves, %llu were stopped for a while.\n",
      wide(kills_.all()), wide(kills_.killed), wide(debugger_.kills()), wide(kills_.aborted), wide(kills_.terminated),
      wide(kills_.daemons), wide(kills_.orderly), wide(kills_.own_end), wide(kills_.stopped));
  if (options_.kills != 0 && kills_.all() < options_.kills)
    std::printf("TIME WAS UP before the %llu kills that were asked for.\n", wide(options_.kills));
  std::printf(
      "%llu calls: %llu answered, %llu failed, aborted, refused or cancelled (%llu), the others' callers died; %llu "
      "executions. %llu bindings were private.\n",
      wide(calls_audited_), wide(ledger().answered.load()), wide(ledger().failed.load()), wide(cancelled),
      wide(executed_), wide(privately));
  for (const Machine& machine : machines_) {
    if (machine.address.empty()) continue;
    std::printf("%s was ended %llu times, %s %llu times.\n", machine.netd.name.c_str(), wide(machine.netd.ends),
                machine.lrpcd.name.c_str(), wide(machine.lrpcd.ends));
    if (wrongs_ == 0 && machine.netd.ends == 0) wrong("%s was never ended", machine.netd.name.c_str());
  }
  if (options_.network) {
    const std::uint64_t answered = ledger().remote_answered.load();
    std::printf("%llu bindings were remote; %llu calls over them were answered.\n",
                wide(ledger().remote_bindings.load()), wide(answered));
    if (wrongs_ == 0 && answered == 0) wrong("no remote call was answered");
  }
  std::printf("%zu steps, %llu hits, %zu steps not hit; the surviving server's poller took up %llu calls.\n",
              debugger_.steps().size(), wide(hits), missed, wide(ledger().polled.load()));
  if (!looks_into_daemons_)
    std::printf(
        "NOT LOOKED AT: the descriptors and regions of the daemons, which nobody may see without CAP_SYS_PTRACE.\n");
  if (wrongs_ == 0) {
    std::printf("Nothing was wrong%s.\n", looks_into_daemons_ ? "" : " in what was looked at");
  } else {
    std::printf("%llu things were WRONG. Logs: %s\nTo repeat: %s\n", wide(wrongs_), options_.directory.c_str(),
                options_.repeat.c_str());
  }
  std::fflush(stdout);
}

}  // namespace lrpc::storm
