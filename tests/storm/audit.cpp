// What must hold during the storm, when a round has drained, and at the end.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <span>
#include <string>

#include "caller.h"
#include "conductor.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "remote_caller.h"

namespace lrpc::storm {
namespace {

/// Under a sanitizer everything takes longer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlow = 4;
#else
constexpr double kSlow = 1;
#endif

/// A longer wait is a fault, whatever dies and however busy the machine is. An export may wait 10 s for a nameserver.
/// In seconds of the conductor's work.
constexpr double kMostSeconds = 240 * kSlow;
constexpr double kMostExportSeconds = 250 * kSlow;
/// In storms with a planted hang. This short, it may also report a process that is only slow.
constexpr std::uint64_t kHangsForLong = 3'000 * kMillisecond;
/// By how much a survivor's memory may grow: malloc keeps memory for the greatest number of threads that there ever
/// was.
constexpr std::uint64_t kMostGrowthKib = 16 * 1024;
/// Descriptors, threads or mappings that are made late, when first needed: the poller, its view of the load.
constexpr std::uint64_t kMadeLate = 4;

}  // namespace

void Conductor::wrong(const char* format, ...) {
  ++wrongs_;
  std::printf("WRONG, round %u: ", round_);
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::printf("\n");
  std::fflush(stdout);
}

void Conductor::print_complaints() {
  const std::uint32_t all = ledger().complained.load();
  for (; complaints_printed_ < std::min<std::uint32_t>(all, kMostComplaints); ++complaints_printed_) {
    Complaint& one = ledger().complaints[complaints_printed_];
    // The process that writes it may be killed meanwhile.
    for (int i = 0; i < 1000 && !one.ready.load(std::memory_order_acquire); ++i) usleep(1000);
    wrong("%.*s", static_cast<int>(sizeof one.text), one.ready.load() ? one.text : "(its writer died)");
  }
}

void Conductor::watch_for_hangs(std::uint64_t now) {
  // Counts only the conductor's own work: what stops the conductor stops all processes. With a network any process may
  // wait for the other machine, so ticks at which all daemons were up are counted, each as a millisecond.
  const std::uint64_t clock = options_.network ? undisturbed_ * kMillisecond : worked_;
  const bool on_purpose = options_.fault == Fault::hang || options_.fault == Fault::netd_hang;
  for (auto& [pid, process] : processes_) {
    if (process.place == kMostProcesses || process.hang_reported) continue;
    process.waits.resize(kMostThreads);
    for (std::size_t i = 0; i < kMostThreads; ++i) {
      const Waiting& one = ledger().places[process.place].threads[i];
      Wait& wait = process.waits[i];
      const std::uint64_t since = one.since.load(std::memory_order_acquire);
      if (since != wait.since) wait = {since, clock};
      if (since == 0 || since > now) continue;
      const char* const what = one.what.load();
      const bool exporting = what != nullptr && (std::string(what) == "export" || std::string(what) == "withdraw");
      const std::uint64_t most = patience(exporting ? kMostExportSeconds : kMostSeconds);
      if (clock - wait.seen < (on_purpose ? kHangsForLong : most)) continue;
      const double waited = static_cast<double>(now - since) / 1e9;
      const std::string file = options_.directory + "/hang-" + std::to_string(pid) + ".txt";
      wrong("a %s (%d) hangs: thread %d has been in %s (call %llu) for %.1f s; see %s", name_of(process.role), pid,
            one.thread.load(), what != nullptr ? what : "?", static_cast<unsigned long long>(one.call.load()), waited,
            file.c_str());
      process.hang_reported = true;
      dump_process(pid, file);
      break;
    }
  }
}

/// Ends the round: clients and mortal servers end, survivors release what they hold. Then checks that all is as at
/// first.
void Conductor::drain(bool last) {
  if (wrongs_ != 0) return;
  draining_ = true;
  ledger().draining.store(true);
  // Clients end by themselves, and most servers end on request: the storm covers the ordinary ends, too.
  for (auto& [pid, process] : processes_) {
    if (process.role != Role::server && process.role != Role::client && process.role != Role::sealed_client) continue;
    process.stop_at = 0;
    process.end_at = 0;
    if (process.role == Role::server) {
      process.end_signal = random_.chance(70) ? SIGTERM : SIGKILL;
      send(pid, process, process.end_signal);
    }
  }
  const auto mortals = [&] { return count(Role::client) + count(Role::server) + count(Role::sealed_client); };
  if (!wait_until([&] { return mortals() == 0 || wrongs_ != 0; }, 2 * kMostExportSeconds)) {
    for (const auto& [pid, process] : processes_) {
      if (process.place == kMostProcesses || process.role == Role::survivor_client ||
          process.role == Role::survivor_server)
        continue;
      const std::string file = options_.directory + "/hang-" + std::to_string(pid) + ".txt";
      wrong("a %s (%d) does not end; see %s", name_of(process.role), pid, file.c_str());
      dump_process(pid, file);
    }
  }
  if (wrongs_ != 0) return;
  std::printf("round %u: %llu killed, %llu calls\n", round_, static_cast<unsigned long long>(kills_.all()),
              static_cast<unsigned long long>(ledger().next_call.load()));
  if (options_.network) {
    if (!wait_until([&] { return all_up() || wrongs_ != 0; }, 2 * kMostSeconds)) wrong("not all daemons are up");
    // A network domain keeps what belongs to the other one's earlier life until a call tells it of the new life.
    audit_newcomers();
    for (Machine& machine : machines_) audit_network(machine, last);
  }
  audit_survivors(last);
  if (wrongs_ != 0) return;
  for (Machine& machine : machines_) audit_nameserver(machine);
  audit_newcomers();
  audit_calls();
  std::fflush(stdout);
}

void Conductor::audit_survivors(bool last) {
  const auto find = [&](Role role, std::uint32_t machine) -> const Place* {
    for (const auto& [pid, process] : processes_) {
      if (process.role != role) continue;
      const Place& place = ledger().places[process.place];
      if (place.machine.load() == machine) return &place;
    }
    return nullptr;
  };
  const Place* const client = find(Role::survivor_client, 0);
  for (std::uint32_t i = 0; i < machines_.size(); ++i) {
    const Place* const server = find(Role::survivor_server, i);
    if (server == nullptr || client == nullptr) return wrong("there is no survivor");
    const auto quiet = [&] { return wrongs_ != 0 || (server->quiet.load() && client->quiet.load()); };
    if (!wait_until(quiet, 2 * kMostSeconds))
      return wrong("the surviving %s does not let go", server->quiet.load() ? "client" : "server");
    if (wrongs_ != 0) return;  // somebody hangs
    audit_survivor(*server, last);
    audit_counts(machines_[i].survivor, server->pid.load(), "surviving server", last, true);
  }
  audit_counts(client_, client->pid.load(), "surviving client", last, true);
}

/// Only the surviving client's two bindings are left, at the server of its machine. Their E-stacks are idle, and there
/// are no grown A-stacks.
void Conductor::audit_survivor(const Place& server, bool last) {
  const std::uint64_t bindings = server.machine.load() == 0 ? 2 : 0;
  const auto at_rest = [&] {
    const bool estacks = (!last && round_ != 0) || server.estacks.load() == 0;
    return server.bindings.load() == bindings && server.astacks_grown.load() == 0 && server.handles.load() == 0 &&
           server.associated.load() == 0 && server.trap_listeners.load() == 0 && estacks;
  };
  if (wait_until(at_rest, kMostSeconds)) return;
  const auto wide = [](std::uint64_t number) { return static_cast<unsigned long long>(number); };
  wrong(
      "the surviving server has %llu bindings (%llu), %llu grown A-stacks (0), %llu handles, %llu trap listeners, "
      "%llu E-stacks, %llu of them associated",
      wide(server.bindings.load()), wide(bindings), wide(server.astacks_grown.load()), wide(server.handles.load()),
      wide(server.trap_listeners.load()), wide(server.estacks.load()), wide(server.associated.load()));
}

/// After the first round: records the counts. Later: there must be no more than that plus kMadeLate, also in a daemon
/// that was restarted. E-stacks do not count, since they come and go by need. `may_stay`: other threads that stay once
/// they were needed. `last`: no E-stacks are left, so memory is compared, too. It is compared with that after the
/// second round, if there was one: the first is short, and malloc makes up to eight heaps per processor at first. A
/// process that cannot be inspected is an error. Without `looks` descriptors and mappings are not compared, and the
/// report says so.
void Conductor::audit_counts(ProcessCounts& then, pid_t pid, const char* who, bool last, bool looks,
                             std::uint64_t may_stay) {
  ProcessCounts now;
  const auto look = [&] {
    now = counts_of(pid);
    const bool seen = now.threads != 0 && now.resident_kib != 0;
    now.threads -= std::min(now.threads, now.estacks);
    return seen && (!looks || (now.descriptors && now.mappings));
  };
  if (!look()) return wrong("cannot look at the %s (%d): who does not see it does not see what it has lost", who, pid);
  const auto wide = [](std::uint64_t number) { return static_cast<unsigned long long>(number); };
  if (round_ == 0) {
    then = now;
    return;
  }
  const auto same = [&] {
    if (!look()) return false;
    const bool held =
        looks && (*now.descriptors > *then.descriptors + kMadeLate || *now.mappings > *then.mappings + kMadeLate);
    return !held && now.threads <= then.threads + kMadeLate + may_stay;
  };
  const auto number = [&](const std::optional<std::uint64_t>& counted) {
    return counted ? std::to_string(*counted) : std::string("?");
  };
  if (!wait_until(same, kMostSeconds)) {
    wrong(
        "the %s has %s descriptors (%s after the first round), %llu threads (%llu), %s mappings of regions and pages "
        "(%s)",
        who, number(now.descriptors).c_str(), number(then.descriptors).c_str(), wide(now.threads), wide(then.threads),
        number(now.mappings).c_str(), number(then.mappings).c_str());
  }
  std::printf("  %-17s %s descriptors, %s regions and pages, %llu threads, %llu KiB\n", who,
              number(now.descriptors).c_str(), number(now.mappings).c_str(), wide(now.threads), wide(now.resident_kib));
  if (round_ == 1 && !last) then.resident_kib = std::max(then.resident_kib, now.resident_kib);
  if (last && kSlow == 1 && now.resident_kib > then.resident_kib + then.resident_kib / 4 + kMostGrowthKib) {
    wrong("the %s has %llu KiB of memory, %llu after the first rounds", who, wide(now.resident_kib),
          wide(then.resident_kib));
  }
}

std::vector<std::string> Conductor::names_at_rest() const {
  if (!options_.network) return {kSurvivorName};
  return {std::string(shim::kNetworkName), kRemoteSurvivorName, kSurvivorName};
}

void Conductor::audit_nameserver(Machine& machine) {
  const char* const who = machine.lrpcd.name.c_str();
  std::vector<std::string> names;
  // After a nameserver was killed, the exporters export their names again.
  const auto known = [&] {
    auto answer = names_at(machine.nameserver);
    names = answer ? *std::move(answer) : std::vector<std::string>{"(no answer)"};
    return names == names_at_rest();
  };
  if (!wait_until(known, kMostSeconds)) {
    wrong("%s knows %zu names, the first is %s; those that live have %zu", who, names.size(),
          names.empty() ? "none" : names.front().c_str(), names_at_rest().size());
  }
  // One socket listens; each exporter and each importer that waits has a connection.
  std::uint64_t sockets = 0;
  if (round_ == 0) {
    const std::uint64_t least = options_.network ? 3 : 2;
    // Connections of ended processes may stay for a moment.
    (void)wait_until([&] { return sockets_at(machine.nameserver) == least; }, kMostSeconds);
    machine.sockets = sockets_at(machine.nameserver);
    if (machine.sockets < least) wrong("cannot count %s's connections: it listens, and the survivor is connected", who);
  }
  if (ledger().fault.load() == static_cast<std::uint32_t>(Fault::lrpcd_kept_descriptor) && round_ != 0) {
    // Connections that this process keeps open: lrpcd then has more descriptors than at first.
    for (std::uint64_t i = 0; i < 3 * kMadeLate; ++i) {
      if (auto connected = shim::connect_nameserver(machine.nameserver))
        kept_connections_.push_back(*std::move(connected));
    }
  }
  if (!wait_until([&] { return (sockets = sockets_at(machine.nameserver)) == machine.sockets; }, kMostSeconds)) {
    wrong("%s has %llu connections, %llu after the first round", who, static_cast<unsigned long long>(sockets),
          static_cast<unsigned long long>(machine.sockets));
  }
  if (machine.lrpcd.pid == 0) return wrong("there is no %s", who);
  audit_counts(machine.lrpcd.counts, machine.lrpcd.pid, who, true, looks_into_daemons_);
}

/// A new process finds room: the quotas of dead processes were given back. It ends before the counts are compared next.
void Conductor::audit_newcomers() {
  for (std::uint32_t i = 0; i < machines_.size(); ++i) {
    if (spawn(Role::newcomer, i) == 0) return wrong("no place for a newcomer");
  }
  if (!wait_until([&] { return count(Role::newcomer) == 0; }, 2 * kMostSeconds)) wrong("a newcomer does not end");
}

/// Checks each call of the round: executed at most once; exactly once if answered; never if not made.
void Conductor::audit_calls() {
  const std::uint64_t end = std::min(ledger().next_call.load(), kMostCalls);
  for (std::uint64_t call = calls_audited_; call < end; ++call) {
    const std::uint32_t times = ledger().executed[call].load(std::memory_order_relaxed);
    const Fate fate = ledger().fates[call].load(std::memory_order_relaxed);
    executed_ += times;
    const bool lost = (fate == Fate::answered || fate == Fate::told) && times == 0;
    const bool too_often = times > 1;
    const bool made_up = (fate == Fate::not_made || fate == Fate::none) && times != 0;
    if (!lost && !too_often && !made_up) continue;
    wrong("call %llu of process %d was executed %u times; its caller %s", static_cast<unsigned long long>(call),
          ledger().callers[call / kCallsOfBlock].load(), times,
          fate == Fate::answered   ? "has its answer"
          : fate == Fate::told     ? "has told a server that lives"
          : fate == Fate::not_made ? "was told that it was not made"
          : fate == Fate::none     ? "never made it"
                                   : "does not know");
    if (wrongs_ > 20) break;
  }
  // Frees the whole pages of calls that were checked.
  const auto give_back = [&](void* from, void* to) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(from) + page - 1) / page * page;
    const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(to) / page * page;
    if (first < last) (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_REMOVE);
  };
  give_back(ledger().executed.data() + calls_audited_, ledger().executed.data() + end);
  give_back(ledger().fates.data() + calls_audited_, ledger().fates.data() + end);
  calls_audited_ = end;
}

void Conductor::end_survivors() {
  ledger().ending.store(true);
  ledger().draining.store(true);
  if (wrongs_ != 0) return;
  for (const Role role : {Role::survivor_client, Role::survivor_server}) {
    if (wait_until([&] { return count(role) == 0; }, 2 * kMostSeconds)) continue;
    wrong("the %s does not end", name_of(role));
  }
}

}  // namespace lrpc::storm
