// What must hold in the network domains when a round has drained.
#include <cstdio>

#include "conductor.h"

namespace lrpc::storm {
namespace {

constexpr double kMostUnbindSeconds = 240;
/// E-stacks that lrpc-netd keeps. The others end after some seconds without calls.
constexpr std::uint64_t kKeptEStacks = 60;
/// How often the conductor looks for the answer to one question, once per millisecond.
constexpr int kLooks = 50;

}  // namespace

/// Checks that no binding is left of clients, or of network domains, that have ended or died.
void Conductor::audit_network(Machine& machine, bool last) {
  NetworkState state{~0ULL, ~0ULL};
  int looks = 0;
  const auto at_rest = [&] {
    if (machine.netd.pid == 0) return false;
    if (looks++ % kLooks == 0) ask_network_state(machine);
    const auto now = network_state(machine);
    if (now) state = *now;
    return now && now->paths == 0 && now->bindings == 0;
  };
  if (!wait_until(at_rest, kMostUnbindSeconds)) {
    wrong("%s has %lld bindings of its machine's clients, and %lld of the other machine's; nobody has any",
          machine.netd.name.c_str(), static_cast<long long>(state.paths), static_cast<long long>(state.bindings));
  }
  if (machine.netd.pid == 0) return wrong("there is no %s", machine.netd.name.c_str());
  std::uint64_t estacks = 0;
  if (last && !wait_until([&] { return (estacks = counts_of(machine.netd.pid).estacks) <= kKeptEStacks; },
                          kMostUnbindSeconds)) {
    const std::string file = options_.directory + "/estacks-" + std::to_string(machine.netd.pid) + ".txt";
    wrong("%s has %llu E-stacks at rest, and keeps %llu; see %s", machine.netd.name.c_str(),
          static_cast<unsigned long long>(estacks), static_cast<unsigned long long>(kKeptEStacks), file.c_str());
    dump_process(machine.netd.pid, file);
  }
  // At most as many threads serve the other machine as it has callers.
  const std::uint64_t workers = 3 * std::uint64_t{options_.clients};
  audit_counts(machine.netd.counts, machine.netd.pid, machine.netd.name.c_str(), last, looks_into_daemons_, workers);
}

}  // namespace lrpc::storm
