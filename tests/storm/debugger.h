// The storm's debugger: stops processes at marked steps of the call path, and kills them there, holds them or lets them
// continue.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "ledger.h"
#include "lrpc/detail/shim/result.h"
#include "random.h"
#include "steps.h"

namespace lrpc::storm {

/// By whom a step was hit: a client, by its gate, or a server. These are the columns of the table.
enum class Column : std::uint8_t { adaptive, exchange, handoff, sleep, trap, server };
inline constexpr std::size_t kColumns = 6;

/// Traces processes (ptrace(2)) that this thread has forked. Call all functions on one thread, the one that waits for
/// its children.
class Debugger {
 public:
  struct Counts {
    std::array<std::uint64_t, kColumns> hits{};
    std::uint64_t kills = 0;
    std::uint64_t holds = 0;
    [[nodiscard]] std::uint64_t all_hits() const { return std::accumulate(hits.begin(), hits.end(), std::uint64_t{0}); }
  };

  Debugger(std::vector<Step> steps, std::uint64_t seed);
  ~Debugger();
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  /// Whether this process may trace and write breakpoints: tries it on a child. Otherwise the error says why not.
  [[nodiscard]] static Status may_trace();
  /// Traces a process that has only one thread and has not been told to start. Fails if the kernel refuses.
  [[nodiscard]] Status trace(pid_t pid, Column column);
  /// Whether the process was killed at a step.
  [[nodiscard]] bool has_killed(pid_t pid) const {
    const auto traced = traced_.find(pid);
    return traced != traced_.end() && traced->second.killed;
  }
  /// Handles what waitpid(2) reported about a thread: continues it, or not. False if the thread has ended.
  bool handle(pid_t thread, int status);
  /// The process has ended, and was waited for.
  void forget(pid_t pid);
  /// Continues threads that were held long enough, and plants removed breakpoints again. Call it every few
  /// milliseconds.
  void tick(std::uint64_t now);
  /// Processes that were killed at a step.
  [[nodiscard]] std::uint64_t kills() const noexcept { return kills_; }

  [[nodiscard]] const std::vector<Step>& steps() const noexcept { return steps_; }
  [[nodiscard]] const std::vector<Counts>& counts() const noexcept { return counts_; }

 private:
  enum class Action : std::uint8_t { kill, hold, pass };
  struct Traced {
    Column column = Column::server;
    int memory = -1;  ///< /proc/PID/mem
    std::size_t step = 0;
    std::uint32_t passes = 0;  ///< Hits to let pass before the action.
    Action action = Action::kill;
    bool planted = false;
    bool killed = false;
    std::uint64_t plant_at = 0;  ///< ns; while not planted.
    std::vector<pid_t> threads;
    std::vector<std::pair<pid_t, std::uint64_t>> held;  ///< Threads, and until when (ns).
  };

  void choose(Traced& traced);
  void plant(Traced& traced);
  void unplant(Traced& traced);
  bool hit(pid_t pid, Traced& traced, pid_t thread, std::uintptr_t pc);
  [[nodiscard]] Traced* of_thread(pid_t thread, pid_t& pid);

  const std::vector<Step> steps_;
  std::map<std::uintptr_t, std::size_t> step_at_;
  std::map<std::uintptr_t, std::uint32_t> code_at_;  ///< The code that a breakpoint overwrites.
  std::vector<Counts> counts_;
  std::map<pid_t, Traced> traced_;
  std::map<pid_t, pid_t> process_of_;
  std::uint64_t kills_ = 0;
  Random random_;
};

}  // namespace lrpc::storm
