#include "conductor.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::storm {
namespace {

constexpr std::uint64_t kClientLife = 260 * kMillisecond;  ///< On average.
constexpr std::uint64_t kServerLife = 600 * kMillisecond;
/// A tick takes 1 ms, or a few if the processors are shared. Time beyond this does not count as work.
constexpr std::uint64_t kMostOfTick = 10 * kMillisecond;
/// If a fault is planted, waits are limited to this part of their ordinary bounds.
constexpr double kHaste = 0.07;

bool is_client(Role role) { return role == Role::client || role == Role::sealed_client; }
bool is_mortal(Role role) { return is_client(role) || role == Role::server; }

Column column_of(Gate gate) {
  switch (gate) {
    case Gate::exchange: return Column::exchange;
    case Gate::handoff: return Column::handoff;
    case Gate::sleep: return Column::sleep;
    case Gate::trap: return Column::trap;
    default: return Column::adaptive;
  }
}

/// Runs a process of the storm from start to exit.
[[noreturn]] void live(Role role, const Orders& orders) {
  while (place().go.load() == 0) syscall(SYS_futex, &place().go, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  int status = 2;
  switch (role) {
    case Role::client: status = run_client(orders); break;
    case Role::sealed_client: status = run_sealed_client(orders); break;
    case Role::server: status = run_server(orders); break;
    case Role::survivor_client: status = run_survivor_client(orders); break;
    case Role::survivor_server: status = run_survivor_server(orders); break;
    case Role::newcomer: status = run_newcomer(orders); break;
    default: break;
  }
  // A sealed process may make few system calls: no exit handlers.
  role == Role::sealed_client ? _exit(status) : exit(status);
}

std::vector<Step> steps_of(const StormOptions& options) {
  auto steps = find_steps();
  if (options.fault == Fault::step_not_hit) steps.push_back({.name = "nowhere", .places = {}});
  return steps;
}

}  // namespace

void become_child(const std::string& log, int keep) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  if (keep >= 0) dup2(keep, kKeptDescriptor);
  close_range(keep >= 0 ? kKeptDescriptor + 1 : kKeptDescriptor, ~0U, 0);
  sigset_t none_blocked;
  sigemptyset(&none_blocked);
  sigprocmask(SIG_SETMASK, &none_blocked, nullptr);
}

Conductor::Conductor(StormOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      debugger_(steps_of(options_), random_.seed()),
      machines_(make_machines(options_.directory, options_.lrpcd, options_.netd, options_.network, options_.fault)) {}

pid_t Conductor::spawn(Role role, std::uint32_t machine) {
  const auto free =
      std::ranges::find_if(ledger().places, [](const Place& one) { return one.role.load() == Role::none; });
  if (free == ledger().places.end()) return 0;
  Place& place = *free;
  for (Waiting& one : place.threads) {
    one.since.store(0);
    one.thread.store(0);
  }
  place.go.store(0);
  place.quiet.store(false);
  place.reports.store(0);
  place.machine.store(machine);
  place.role.store(role);

  constexpr Gate kGates[] = {Gate::adaptive, Gate::adaptive, Gate::exchange, Gate::handoff, Gate::sleep};
  Random own(options_.seed * 1'000'003 + ++spawned_);
  Orders orders{
      .nameserver = machines_[machine].nameserver, .seed = own.seed(), .gate = kGates[own.below(std::size(kGates))]};
  if (role == Role::sealed_client) orders.gate = Gate::trap;
  if (role == Role::survivor_client) orders.gate = Gate::adaptive;
  orders.ends_itself = is_mortal(role) && own.chance(5);
  const auto number = static_cast<std::size_t>(free - ledger().places.begin());
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    place.role.store(Role::none);
    return 0;
  }
  if (pid == 0) {
    become_child(options_.directory + "/processes.log");
    take_place(number);
    live(role, orders);
  }
  place.pid.store(pid);
  Process process{.place = number, .role = role, .born = monotonic_ns(), .may_abort = orders.ends_itself};
  const bool is_server = role == Role::server;
  if (is_mortal(role) && !draining_) {
    draw_fate(process, pid, orders.ends_itself);
    if (options_.debugger && !orders.ends_itself && own.chance(50)) {
      const Status traced = debugger_.trace(pid, is_server ? Column::server : column_of(orders.gate));
      if (!traced) wrong("cannot trace a %s (%d): %s", name_of(role), pid, traced.error().message().c_str());
    }
  }
  processes_.emplace(pid, process);
  place.go.store(1);
  syscall(SYS_futex, &place.go, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  return pid;
}

/// Draws when and how a process shall end, unless the debugger kills it or it ends itself before.
void Conductor::draw_fate(Process& process, pid_t, bool ends_itself) {
  const std::uint64_t life = is_client(process.role) ? kClientLife : kServerLife;
  process.end_at = process.born + kMillisecond + random_.time_to_next(ends_itself ? 3 * life : life);
  const std::uint32_t what = random_.below(100);
  process.end_signal = what < 84 ? SIGKILL : what < 92 ? SIGABRT : SIGTERM;
  if (random_.chance(12)) process.stop_at = process.born + random_.time_to_next(life / 2);
}

std::size_t Conductor::count(Role role) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(processes_, [&](const auto& one) { return one.second.role == role; }));
}

void Conductor::fill_up() {
  const std::size_t sealed = options_.clients / 6;
  const auto somewhere = [&] { return random_.below(static_cast<std::uint32_t>(machines_.size())); };
  // Few at a time, so that new processes also get to run.
  for (int i = 0; i < 4; ++i) {
    if (count(Role::server) < options_.servers) (void)spawn(Role::server, somewhere());
    if (count(Role::client) < options_.clients - sealed) (void)spawn(Role::client, somewhere());
    if (i == 0 && count(Role::sealed_client) < sealed) (void)spawn(Role::sealed_client, somewhere());
  }
}

void Conductor::send(pid_t pid, Process& process, int signal) {
  if (signal == SIGABRT) process.may_abort = true;
  if (signal == SIGKILL) process.sent_kill = true;
  if (process.continue_at != 0 && signal != SIGKILL) ::kill(pid, SIGCONT);
  ::kill(pid, signal);
}

void Conductor::tick(bool storming) {
  const timespec pause{0, kMillisecond};
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  (void)sigtimedwait(&child, nullptr, &pause);
  const std::uint64_t now = monotonic_ns();
  if (last_tick_ != 0) worked_ += std::min(now - last_tick_, kMostOfTick);
  if (all_up()) ++undisturbed_;
  last_tick_ = now;
  reap();
  debugger_.tick(now);
  for (auto& [pid, process] : processes_) {
    if (process.stop_at != 0 && now >= process.stop_at) {
      process.stop_at = 0;
      process.continue_at = now + random_.between(1, 40) * kMillisecond;
      ++kills_.stopped;
      ::kill(pid, SIGSTOP);
    }
    if (process.continue_at != 0 && now >= process.continue_at) {
      process.continue_at = 0;
      ::kill(pid, SIGCONT);
    }
    if (process.end_at != 0 && now >= process.end_at) {
      send(pid, process, process.end_signal);
      // After SIGTERM the process must end by itself; watch_for_hangs() reports it if it does not.
      process.end_at = process.end_signal == SIGTERM ? 0 : now + 1000 * kMillisecond;
    }
  }
  if (storming) fill_up();
  for (Daemon* const daemon : daemons()) {
    if (storming) disturb(*daemon, now);
    supervise(*daemon, now);
  }
  if (now - looked_for_hangs_ > 100 * kMillisecond) {
    looked_for_hangs_ = now;
    watch_for_hangs(now);
    print_complaints();
  }
}

void Conductor::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, __WALL | WNOHANG);
    if (pid <= 0) return;
    if (debugger_.handle(pid, status)) continue;
    const auto found = processes_.find(pid);
    if (found == processes_.end()) continue;  // a thread of a traced process
    const Process process = found->second;
    processes_.erase(found);
    ended(pid, process, status);
  }
}

void Conductor::ended(pid_t pid, Process process, int status) {
  if (process.place < kMostProcesses) ledger().places[process.place].role.store(Role::none);
  process.sent_kill = process.sent_kill || debugger_.has_killed(pid);
  debugger_.forget(pid);
  const bool survivor = process.role == Role::survivor_client || process.role == Role::survivor_server;
  if (survivor && !ledger().ending.load()) wrong("the %s has ended, status %#x", name_of(process.role), status);
  for (Daemon* const daemon : daemons()) {
    if (daemon->pid == pid) return daemon_ended(*daemon, process, status);
  }
  if (WIFEXITED(status)) {
    if (WEXITSTATUS(status) != 0)
      wrong("a %s (%d) has ended with status %d", name_of(process.role), pid, WEXITSTATUS(status));
    ++(process.end_signal == SIGTERM && process.end_at == 0 ? kills_.orderly : kills_.own_end);
    return;
  }
  switch (WTERMSIG(status)) {
    case SIGKILL:
      if (!process.sent_kill) wrong("a %s (%d) was killed, but not by the storm", name_of(process.role), pid);
      ++kills_.killed;
      break;
    case SIGTERM: ++kills_.terminated; break;  // a sealed process, or one that has not blocked SIGTERM yet
    case SIGABRT:
      if (!process.may_abort) wrong("a %s (%d) has aborted", name_of(process.role), pid);
      ++(process.end_signal == SIGABRT ? kills_.aborted : kills_.own_end);
      break;
    default: wrong("a %s (%d) has died of signal %d", name_of(process.role), pid, WTERMSIG(status));
  }
}

bool Conductor::wait_until(const std::function<bool()>& done, double seconds) {
  // After an error the storm has failed already, so further checks wait less.
  const std::uint64_t until = worked_ + patience(seconds) / (wrongs_ == 0 ? 1 : 10);
  while (!done()) {
    if (worked_ > until) return false;
    tick(false);
  }
  return true;
}

std::uint64_t Conductor::patience(double seconds) const {
  return static_cast<std::uint64_t>(seconds * (options_.fault == Fault::none ? 1 : kHaste) * 1e9);
}

/// Whether the storm may end.
bool Conductor::enough(std::uint64_t began) const {
  const double minutes = static_cast<double>(monotonic_ns() - began) / 60e9;
  if (static_cast<double>(worked_) / 60e9 > kMostPatience * options_.minutes) return true;
  if (kills_.all() < options_.least_kills) return false;
  if (!std::ranges::all_of(machines_, [](const Machine& one) { return one.address.empty() || one.netd.ends != 0; }))
    return false;
  return minutes > options_.minutes || (options_.kills != 0 && kills_.all() >= options_.kills);
}

void Conductor::kill_all() {
  for (auto& [pid, process] : processes_) send(pid, process, SIGKILL);
  const std::uint64_t until = monotonic_ns() + 120'000 * kMillisecond;
  while (!processes_.empty() && monotonic_ns() < until) {
    reap();
    usleep(1000);
  }
}

std::optional<bool> Conductor::run() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  make_ledger();
  ledger().fault.store(static_cast<std::uint32_t>(options_.fault));
  ledger().machines.store(static_cast<std::uint32_t>(machines_.size()));
  for (std::size_t i = 0; i < machines_.size(); ++i)
    machines_[i].address.copy(ledger().addresses[i].data(), ledger().addresses[i].size() - 1);
  if (const Status may = Debugger::may_trace(); options_.debugger && !may) {
    std::printf("CANNOT TRACE: %s. Without a debugger no step is hit; --no-debugger kills at random alone.\n",
                may.error().message().c_str());
    return std::nullopt;
  }
  const std::uint64_t began = monotonic_ns();
  if (!wait_until([&] { return all_up(); }, 240)) wrong("the daemons do not start; see %s", options_.directory.c_str());
  for (std::uint32_t i = 0; i < machines_.size(); ++i) (void)spawn(Role::survivor_server, i);
  // From here on the survivors are exported, except while lrpcd is away.
  const auto there = [&](const Machine& machine) {
    const auto names = names_at(machine.nameserver);
    return names && *names == names_at_rest();
  };
  if (!wait_until([&] { return std::ranges::all_of(machines_, there); }, 240)) wrong("a survivor is not exported");
  (void)spawn(Role::survivor_client);
  for (bool last = false; !last && wrongs_ == 0; ++round_) {
    ledger().round.store(round_);
    ledger().draining.store(draining_ = false);
    // The first round is short. It warms up, and shows how much each process holds when it is idle.
    const double length = round_ == 0 ? std::min(1.5, options_.round_seconds) : options_.round_seconds;
    const std::uint64_t until = worked_ + static_cast<std::uint64_t>(length * 1e9);
    while (worked_ < until && !enough(began) && wrongs_ == 0) tick(true);
    last = enough(began);
    drain(last);
  }
  end_survivors();
  kill_all();
  if (waitpid(-1, nullptr, __WALL | WNOHANG) != -1) wrong("a process is left behind");
  print_complaints();
  report(began);
  return wrongs_ == 0;
}

}  // namespace lrpc::storm
