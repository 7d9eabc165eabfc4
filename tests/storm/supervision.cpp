// How the conductor starts, ends, stops and restarts the daemons.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "conductor.h"

namespace lrpc::storm {
namespace {

/// Average time between two ends, or stops, of one daemon.
constexpr std::uint64_t kLrpcdLife = 2000 * kMillisecond;
constexpr std::uint64_t kNetdLife = 1000 * kMillisecond;
/// Delay before an lrpc-netd is restarted that failed to start: lrpcd was away, or still had the name of the previous
/// lrpc-netd because it had not noticed its death.
constexpr std::uint64_t kStartAgain = 50 * kMillisecond;
/// Patience, as work of the conductor, for the sockets of a dead daemon, for its start, and for its end on request.
constexpr std::uint64_t kPatience = 20'000 * kMillisecond;

}  // namespace

std::vector<Daemon*> Conductor::daemons() {
  std::vector<Daemon*> all;
  for (Machine& machine : machines_) {
    all.push_back(&machine.lrpcd);
    if (!machine.address.empty()) all.push_back(&machine.netd);
  }
  return all;
}

bool Conductor::all_up() {
  return std::ranges::all_of(daemons(), [&](const Daemon* daemon) {
    const auto process = processes_.find(daemon->pid);
    return daemon->up && process != processes_.end() && process->second.continue_at == 0;
  });
}

void Conductor::start(Daemon& daemon) {
  int ready[2];
  if (pipe2(ready, O_NONBLOCK) != 0) return;
  daemon.ready.reset(ready[0]);
  const UniqueFd end(ready[1]);
  std::vector<std::string> command = daemon.command;
  command.insert(command.end(), {"--ready-fd", std::to_string(kKeptDescriptor)});
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return;
  if (pid == 0) {
    become_child(daemon.log, end.get());
    std::vector<char*> arguments;
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  daemon.pid = pid;
  daemon.up = daemon.asked = false;
  processes_.emplace(pid, Process{.place = kMostProcesses, .role = daemon.role, .born = monotonic_ns()});
}

void Conductor::supervise(Daemon& daemon, std::uint64_t now) {
  if (daemon.pid != 0 && !daemon.up && !daemon.asked) {
    char byte = 0;
    daemon.up = ::read(daemon.ready.get(), &byte, 1) == 1;
    if (daemon.up) daemon.ready.reset();
  }
  if (!daemon.up && worked_ > daemon.ended + kPatience && wrongs_ == 0) {
    wrong("%s %s; see %s", daemon.name.c_str(),
          daemon.asked                          ? "does not end when it is asked to"
          : daemon.pid == 0 && daemon.lingers() ? "was killed, and its sockets are there still"
                                                : "does not start",
          daemon.log.c_str());
  }
  if (daemon.pid == 0 && now >= daemon.again_at && !daemon.lingers()) start(daemon);
}

void Conductor::note_end(Daemon& daemon) {
  if (daemon.role == Role::network_domain && !std::exchange(daemon.ends_now, true)) ledger().network_ends.fetch_add(1);
  daemon.up = false;
  daemon.ended = worked_;
  ++daemon.ends;
}

/// In every other round, kills, stops or ends the daemons at random times. In the rounds between nothing happens to
/// them.
void Conductor::disturb(Daemon& daemon, std::uint64_t now) {
  // Stopped for good, and not recorded as stopped.
  if (options_.fault == Fault::netd_hang && &daemon == &machines_.back().netd && daemon.up) ::kill(daemon.pid, SIGSTOP);
  if (round_ % 2 == 0 || daemon.pid == 0 || daemon.asked) return;
  const bool netd = daemon.role == Role::network_domain;
  if (daemon.disturb_at == 0) daemon.disturb_at = now + random_.time_to_next(netd ? kNetdLife : kLrpcdLife);
  if (now < daemon.disturb_at) return;
  daemon.disturb_at = 0;
  Process& process = processes_.at(daemon.pid);
  const std::uint32_t what = random_.below(100);
  // Only if it is up: before, it may end by itself.
  const bool asked = netd && daemon.up && what >= 85;
  if (what < 70 || asked) {
    note_end(daemon);
    daemon.asked = asked;
    daemon.again_at = now + random_.below(100) * kMillisecond;
    if (!asked) ++kills_.daemons;
    send(daemon.pid, process, asked ? SIGTERM : SIGKILL);
  } else if (process.continue_at == 0) {
    process.stop_at = now;
  }
}

void Conductor::daemon_ended(Daemon& daemon, const Process& process, int status) {
  const bool was_up = std::exchange(daemon.up, false);
  if (std::exchange(daemon.ends_now, false)) ledger().network_ends_over.fetch_add(1);
  daemon.pid = 0;
  daemon.ready.reset();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    if (!process.sent_kill) wrong("%s was killed, but not by the storm", daemon.name.c_str());
    return;
  }
  if (std::exchange(daemon.asked, false)) {
    // It ended in order, or SIGTERM came before it was ready for signals.
    const bool good = WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGTERM;
    if (!good) wrong("%s was asked to end, and has ended with status %#x", daemon.name.c_str(), status);
    ++kills_.orderly;
    return;
  }
  if (daemon.role == Role::network_domain && !was_up && WIFEXITED(status) && WEXITSTATUS(status) == 1) {
    daemon.again_at = monotonic_ns() + kStartAgain;
    return;
  }
  wrong("%s has ended by itself, status %#x; see %s", daemon.name.c_str(), status, daemon.log.c_str());
}

}  // namespace lrpc::storm
