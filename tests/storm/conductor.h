// The conductor: starts the storm's processes, kills them, and checks what they leave behind.
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
  std::uint64_t kills = 0;        ///< Ends earlier, after this many kills. 0: by time alone.
  std::uint64_t least_kills = 0;  ///< Continues until this many kills, for up to kMostPatience times `minutes`.
  std::uint64_t seed = 1;
  double round_seconds = 10;
  std::uint32_t clients = 16;
  std::uint32_t servers = 12;
  bool debugger = true;
  bool must_hit = false;  ///< Every step must be hit, also in a storm under a minute.
  bool network = false;   ///< Two machines, joined by lrpc-netds, which the storm kills, too.
  Fault fault = Fault::none;
  std::string lrpcd;  ///< The programs to run: this and `netd`.
  std::string netd;
  std::string directory;  ///< For logs, sockets, and the other files of the daemons.
  std::string repeat;     ///< The command that repeats this storm.
};

/// A storm continues for at most this many times its minutes to reach StormOptions::least_kills.
inline constexpr double kMostPatience = 6;

/// In a child, after fork: redirects output to that file, closes all descriptors but `keep`, which becomes
/// kKeptDescriptor, and makes the child end with the storm.
void become_child(const std::string& log, int keep = -1);
inline constexpr int kKeptDescriptor = 3;

/// One storm. Single-threaded, because it forks.
class Conductor {
 public:
  explicit Conductor(StormOptions options);
  /// True: nothing was wrong. Nothing: the storm cannot run here, and has printed why.
  [[nodiscard]] std::optional<bool> run();

 private:
  /// One thread's wait: when it began, and the conductor's clock (watch_for_hangs()) when it was first seen.
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
    bool may_abort = false;  ///< By its own choice, or because SIGABRT was sent to it.
    bool sent_kill = false;
    bool hang_reported = false;
    std::vector<Wait> waits{};  ///< Of its threads, at the last check.
  };
  struct Kills {
    std::uint64_t killed = 0, aborted = 0, terminated = 0, daemons = 0;
    std::uint64_t stopped = 0, own_end = 0, orderly = 0;  ///< These are no kills.
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
  /// `seconds` of work. Fewer if a fault is planted, so that its effect is reported sooner.
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
  /// The storm is about to end the daemon: notes that.
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
  /// ns that the conductor has worked. While the machine does not let it run, the other processes do not run either. So
  /// all patience is counted in this time.
  std::uint64_t worked_ = 0;
  /// Ticks of the conductor at which all daemons were up. Waits for the other machine are counted in these, because
  /// such a wait may last as long as a daemon is away.
  std::uint64_t undisturbed_ = 0;
  std::uint64_t looked_for_hangs_ = 0;

  std::vector<Machine> machines_;
  ProcessCounts client_;                                 ///< After round 0, when it held only what it always holds.
  const bool looks_into_daemons_ = may_look_into_all();  ///< Daemons hide their descriptors and mappings from others.
  std::vector<UniqueFd> kept_connections_;               ///< For Fault::lrpcd_kept_descriptor.
  std::uint32_t complaints_printed_ = 0;
  std::uint64_t wrongs_ = 0;
  std::uint64_t calls_audited_ = 0, executed_ = 0;
};

}  // namespace lrpc::storm
