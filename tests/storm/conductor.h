// The conductor: starts the storm's processes, kills them, and looks after what is left.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemons.h"
#include "debugger.h"
#include "ledger.h"
#include "lrpc/detail/shim/system/fd.h"
#include "process_info.h"
#include "random.h"
#include "roles.h"

namespace lrpc::storm {

struct StormOptions {
  double minutes = 1;
  std::uint64_t kills = 0;        ///< Ends earlier once so many have been killed; 0: by time alone.
  std::uint64_t least_kills = 0;  ///< Goes on until so many have been killed, up to kMostPatience times as long.
  std::uint64_t seed = 1;
  double round_seconds = 10;
  std::uint32_t clients = 16;
  std::uint32_t servers = 12;
  bool debugger = true;
  bool must_hit = false;  ///< Every step, also in a storm under a minute.
  bool network = false;   ///< Two machines, joined by lrpc-netds, which are killed, too.
  Fault fault = Fault::none;
  std::string lrpcd;  ///< The programs.
  std::string netd;
  std::string directory;  ///< Logs, sockets, and what else belongs to the daemons.
  std::string repeat;     ///< The command that repeats this storm.
};

/// For how many times its minutes a storm goes on for StormOptions::least_kills.
inline constexpr double kMostPatience = 6;

/// In a child, after fork: logs to that file, keeps no descriptor but `keep`, as kKeptDescriptor, and ends with the
/// storm.
void become_child(const std::string& log, int keep = -1);
inline constexpr int kKeptDescriptor = 3;

/// One storm. Single-threaded: it forks.
class Conductor {
 public:
  explicit Conductor(StormOptions options);
  /// True: nothing was wrong. Nothing: it cannot be done here, and has said why.
  [[nodiscard]] std::optional<bool> run();

 private:
  /// One thread's wait: when it began, and what the conductor had worked when it was first seen.
  struct Wait {
    std::uint64_t since = 0;
    std::uint64_t seen = 0;
  };
  struct Process {
    std::size_t place = 0;
    Role role = Role::none;
    std::uint64_t born = 0;
    std::uint64_t end_at = 0;  ///< ns; 0: never.
    int end_signal = 0;
    std::uint64_t stop_at = 0;
    std::uint64_t continue_at = 0;
    bool may_abort = false;  ///< By its own choice, or because it was sent the signal.
    bool sent_kill = false;
    bool hang_reported = false;
    std::vector<Wait> waits{};  ///< Of its threads, as they were when last looked at.
  };
  struct Kills {
    std::uint64_t killed = 0, aborted = 0, terminated = 0, daemons = 0;
    std::uint64_t stopped = 0, own_end = 0, orderly = 0;  ///< No kills.
    [[nodiscard]] std::uint64_t all() const { return killed + aborted + terminated + daemons; }
  };

  // conductor.cpp
  pid_t spawn(Role role, std::uint32_t machine = 0);
  void draw_fate(Process& process, pid_t pid, bool ends_itself);
  void fill_up();
  void tick(bool storming);
  void reap();
  void ended(pid_t pid, Process process, int status);
  void send(pid_t pid, Process& process, int signal);
  /// Seconds of work, fewer if there is a fault to be found: what it leads to is said sooner.
  [[nodiscard]] bool wait_until(const std::function<bool()>& done, double seconds);
  [[nodiscard]] std::uint64_t patience(double seconds) const;
  [[nodiscard]] std::size_t count(Role role) const;
  [[nodiscard]] bool enough(std::uint64_t began) const;
  void kill_all();

  // supervision.cpp
  [[nodiscard]] std::vector<Daemon*> daemons();
  [[nodiscard]] bool all_up();
  void supervise(Daemon& daemon, std::uint64_t now);
  void start(Daemon& daemon);
  void disturb(Daemon& daemon, std::uint64_t now);
  void daemon_ended(Daemon& daemon, const Process& process, int status);
  /// A daemon's end, which the storm is about to bring about.
  void note_end(Daemon& daemon);

  // audit.cpp
  void watch_for_hangs(std::uint64_t now);
  void print_complaints();
  [[gnu::format(printf, 2, 3)]] void wrong(const char* format, ...);
  void drain(bool last);
  void audit_survivors(bool last);
  void audit_survivor(const Place& server, bool last);
  void audit_counts(ProcessCounts& then, pid_t pid, const char* who, bool last, bool looks, std::uint64_t may_stay = 0);
  [[nodiscard]] std::vector<std::string> names_at_rest() const;
  void audit_nameserver(Machine& machine);
  void audit_newcomers();
  void audit_calls();
  void end_survivors();

  // audit_network.cpp
  void audit_network(Machine& machine, bool last);

  // report.cpp
  void report(std::uint64_t began);

  const StormOptions options_;
  Random random_;
  Debugger debugger_;
  std::map<pid_t, Process> processes_;
  std::uint64_t spawned_ = 0;
  Kills kills_;
  bool draining_ = false;
  std::uint32_t round_ = 0;
  std::uint64_t last_tick_ = 0;
  /// ns that the conductor has been at work: what it is kept from its work, others are kept from theirs. All patience
  /// is counted in it.
  std::uint64_t worked_ = 0;
  /// Looks of the conductor, one in each tick, at which all daemons were up. In these a wait for the other machine is
  /// counted: as long as a daemon is away, it may go on.
  std::uint64_t undisturbed_ = 0;
  std::uint64_t looked_for_hangs_ = 0;

  std::vector<Machine> machines_;
  ProcessCounts client_;  ///< When it held nothing but what it always holds: after round 0.
  const bool looks_into_daemons_ = may_look_into_all();  ///< They let nobody else see their descriptors and mappings.
  std::vector<UniqueFd> kept_connections_;               ///< Fault::lrpcd_kept_descriptor's.
  std::uint32_t complaints_printed_ = 0;
  std::uint64_t wrongs_ = 0;
  std::uint64_t calls_audited_ = 0, executed_ = 0;
};

}  // namespace lrpc::storm
