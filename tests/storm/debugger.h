// The storm's debugger: stops processes at marked steps of the call path, and kills them there, holds them or lets them
// go on.
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

/// In whose life a step was hit: columns of the table.
enum class Column : std::uint8_t { adaptive, exchange, handoff, sleep, trap, server };
inline constexpr std::size_t kColumns = 6;

/// Traces processes (ptrace(2)) that this thread has forked. All functions on one thread, which is also the one that
/// waits for its children.
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

  /// Whether we may trace and write breakpoints at all: tries it on a process of its own. Otherwise why not.
  [[nodiscard]] static Status may_trace();
  /// Traces a process that has one thread yet and waits for its go. Fails if the kernel does not let us.
  [[nodiscard]] Status trace(pid_t pid, Column column);
  /// Whether the process was killed at a step.
  [[nodiscard]] bool has_killed(pid_t pid) const {
    const auto traced = traced_.find(pid);
    return traced != traced_.end() && traced->second.killed;
  }
  /// What waitpid(2) said about a thread, which goes on, or not. False if it has ended.
  bool handle(pid_t thread, int status);
  /// The process has ended: it was waited for.
  void forget(pid_t pid);
  /// Lets go on who was held long enough, plants again what was passed. Every few milliseconds.
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
    std::uint32_t passes = 0;  ///< Hits to let go before the action.
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
  std::map<std::uintptr_t, std::uint32_t> code_at_;  ///< What a breakpoint overwrites.
  std::vector<Counts> counts_;
  std::map<pid_t, Traced> traced_;
  std::map<pid_t, pid_t> process_of_;
  std::uint64_t kills_ = 0;
  Random random_;
};

}  // namespace lrpc::storm
