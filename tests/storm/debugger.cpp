#include "debugger.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "breakpoint.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::storm {
namespace {

bool is_clients(const std::string& name) {
  for (const char* own : {"client", "T1", "T2", "T3", "T3 sleep", "T4", "T15", "T16", "T17", "T17 T18 word", "T19"}) {
    if (name == own || (std::strcmp(own, "client") == 0 && name.starts_with(own))) return true;
  }
  return false;
}

/// The step occurs only with the trap gate.
bool is_traps(const std::string& name) { return name == "client 5 trap"; }

/// The process that a thread belongs to; 0 if it is gone.
pid_t process_of(pid_t thread) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/status", thread);
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  char line[128];
  int pid = 0;
  while (std::fgets(line, sizeof line, file) != nullptr && std::sscanf(line, "Tgid: %d", &pid) != 1) {
  }
  std::fclose(file);
  return pid;
}

std::string memory_of(pid_t pid) { return "/proc/" + std::to_string(pid) + "/mem"; }

}  // namespace

Debugger::Debugger(std::vector<Step> steps, std::uint64_t seed)
    : steps_(std::move(steps)), counts_(steps_.size()), random_(seed) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const std::uintptr_t place : steps_[i].places) {
      step_at_[place] = i;
      std::memcpy(&code_at_[place], reinterpret_cast<const void*>(place), kBreakpointSize);
    }
  }
}

Debugger::~Debugger() {
  for (auto& [pid, traced] : traced_) close(traced.memory);
}

Status Debugger::may_trace() {
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork", errno);
  if (pid == 0) {
    for (;;) pause();
  }
  const int refused = ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 0 : errno;
  const UniqueFd memory(open(memory_of(pid).c_str(), O_RDWR | O_CLOEXEC));
  const auto* const place = reinterpret_cast<const void*>(&Debugger::may_trace);
  const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(place));
  const int unwritten =
      pwrite(memory.get(), place, kBreakpointSize, at) == static_cast<ssize_t>(kBreakpointSize) ? 0 : errno;
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  if (refused != 0) return system_error("ptrace", refused);
  if (unwritten != 0) return system_error("/proc/PID/mem", unwritten);
  return {};
}

Status Debugger::trace(pid_t pid, Column column) {
  // PTRACE_O_EXITKILL: no traced process outlives the storm.
  if (ptrace(PTRACE_SEIZE, pid, nullptr, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) != 0)
    return system_error("ptrace", errno);
  Traced traced;
  traced.column = column;
  traced.memory = open(memory_of(pid).c_str(), O_RDWR | O_CLOEXEC);
  if (traced.memory < 0) return system_error("/proc/PID/mem", errno);
  traced.threads.push_back(pid);
  process_of_[pid] = pid;
  choose(traced);
  plant(traced);
  traced_.emplace(pid, std::move(traced));
  return {};
}

/// Chooses the next step to stop the process at, among those that its role reaches; prefers steps with fewer hits.
void Debugger::choose(Traced& traced) {
  const auto fits = [&](std::size_t step) {
    const bool client = is_clients(steps_[step].name);
    if (is_traps(steps_[step].name)) return traced.column == Column::trap;
    return traced.column == Column::server ? !client || random_.chance(15) : client;
  };
  const auto hits = [&](std::size_t step) { return counts_[step].hits[static_cast<std::size_t>(traced.column)]; };
  // Rarely reached steps need many attempts. So half of the choices go to steps that were not hit yet.
  const bool seldom = random_.chance(50);
  std::size_t chosen = steps_.size();
  for (int tries = 0; tries < (seldom ? 64 : 8); ++tries) {
    const std::size_t drawn = random_.below(static_cast<std::uint32_t>(steps_.size()));
    if (!fits(drawn) || (seldom && tries < 60 && counts_[drawn].all_hits() != 0)) continue;
    if (chosen == steps_.size() || hits(drawn) < hits(chosen)) chosen = drawn;
    if (tries >= 2) break;
  }
  traced.step = chosen == steps_.size() ? 0 : chosen;
  traced.passes = random_.chance(60) ? 0 : random_.between(1, 6);
  const std::uint32_t what = random_.below(100);
  traced.action = what < 70 ? Action::kill : what < 90 ? Action::hold : Action::pass;
}

void Debugger::plant(Traced& traced) {
  for (const std::uintptr_t place : steps_[traced.step].places) {
    (void)!pwrite(traced.memory, kBreakpoint, kBreakpointSize, static_cast<off_t>(place));
  }
  traced.planted = true;
}

void Debugger::unplant(Traced& traced) {
  for (const std::uintptr_t place : steps_[traced.step].places) {
    (void)!pwrite(traced.memory, &code_at_.at(place), kBreakpointSize, static_cast<off_t>(place));
  }
  traced.planted = false;
}

Debugger::Traced* Debugger::of_thread(pid_t thread, pid_t& pid) {
  auto known = process_of_.find(thread);
  if (known == process_of_.end()) {
    pid = process_of(thread);
    const auto traced = traced_.find(pid);
    if (traced == traced_.end()) return nullptr;
    traced->second.threads.push_back(thread);
    process_of_[thread] = pid;
    return &traced->second;
  }
  pid = known->second;
  const auto traced = traced_.find(pid);
  return traced == traced_.end() ? nullptr : &traced->second;
}

bool Debugger::handle(pid_t thread, int status) {
  pid_t pid = 0;
  Traced* const traced = of_thread(thread, pid);
  if (!WIFSTOPPED(status)) {
    if (traced != nullptr && thread != pid) std::erase(traced->threads, thread);
    process_of_.erase(thread);
    return false;
  }
  const int signal = WSTOPSIG(status);
  const int event = status >> 16;
  if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
    ptrace(PTRACE_LISTEN, thread, nullptr, nullptr);  // a stop by SIGSTOP: until SIGCONT
    return true;
  }
  if (event != 0) {
    ptrace(PTRACE_CONT, thread, nullptr, nullptr);
    return true;
  }
  if (signal == SIGTRAP && traced != nullptr) {
    Registers registers{};
    if (!get_registers(thread, registers)) return true;
    const auto place = static_cast<std::uintptr_t>(program_counter(registers)) - kAfterBreakpoint;
    if (step_at_.contains(place)) {
      program_counter(registers) = place;
      (void)set_registers(thread, registers);
      if (hit(pid, *traced, thread, place)) ptrace(PTRACE_CONT, thread, nullptr, nullptr);
      return true;
    }
  }
  ptrace(PTRACE_CONT, thread, nullptr, signal);
  return true;
}

/// True: the thread shall continue.
bool Debugger::hit(pid_t pid, Traced& traced, pid_t thread, std::uintptr_t pc) {
  const auto& places = steps_[traced.step].places;
  // Another thread may have hit a breakpoint that was removed since.
  if (!traced.planted || !std::ranges::binary_search(places, pc)) {
    ++counts_[step_at_.at(pc)].hits[static_cast<std::size_t>(traced.column)];
    return true;
  }
  Counts& counts = counts_[traced.step];
  ++counts.hits[static_cast<std::size_t>(traced.column)];
  unplant(traced);
  traced.plant_at = monotonic_ns() + random_.below(1500) * 1000;
  if (traced.passes > 0) {
    --traced.passes;
    return true;
  }
  if (traced.action == Action::kill) {
    ++counts.kills;
    ++kills_;
    traced.killed = true;
    kill(pid, SIGKILL);
    return false;
  }
  const bool hold = traced.action == Action::hold;
  if (hold) {
    ++counts.holds;
    traced.held.emplace_back(thread, monotonic_ns() + random_.between(1, 20) * kMillisecond);
  }
  choose(traced);
  return !hold;
}

void Debugger::forget(pid_t pid) {
  const auto traced = traced_.find(pid);
  if (traced == traced_.end()) return;
  for (const pid_t thread : traced->second.threads) process_of_.erase(thread);
  process_of_.erase(pid);
  close(traced->second.memory);
  traced_.erase(traced);
}

void Debugger::tick(std::uint64_t now) {
  for (auto& [pid, traced] : traced_) {
    std::erase_if(traced.held, [&](const auto& held) {
      if (now < held.second) return false;
      ptrace(PTRACE_CONT, held.first, nullptr, nullptr);
      return true;
    });
    if (!traced.planted && now >= traced.plant_at) plant(traced);
  }
}

}  // namespace lrpc::storm
