// The conductor: starts the storm's processes, kills them, and looks after what is left.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "debugger.h"
#include "ledger.h"
#include "lrpc/shim/fd.h"
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
  Fault fault = Fault::none;
  std::string lrpcd;      ///< The program.
  std::string directory;  ///< Logs and the nameserver's socket.
  std::string repeat;     ///< The command that repeats this storm.
};

/// For how many times its minutes a storm goes on for StormOptions::least_kills.
inline constexpr double kMostPatience = 6;

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
    std::uint64_t killed = 0, aborted = 0, terminated = 0, nameservers = 0;
    std::uint64_t stopped = 0, own_end = 0, orderly = 0;  ///< No kills.
    [[nodiscard]] std::uint64_t all() const { return killed + aborted + terminated + nameservers; }
  };

  // conductor.cpp
  pid_t spawn(Role role);
  void draw_fate(Process& process, pid_t pid, bool ends_itself);
  void fill_up();
  void tick(bool storming);
  void reap();
  void ended(pid_t pid, Process process, int status);
  void send(pid_t pid, Process& process, int signal);
  [[nodiscard]] bool dead_one_listens();
  void start_nameserver();
  void disturb_nameserver(std::uint64_t now);
  /// Seconds of work, fewer if there is a fault to be found: what it leads to is said sooner.
  [[nodiscard]] bool wait_until(const std::function<bool()>& done, double seconds);
  [[nodiscard]] std::uint64_t patience(double seconds) const;
  [[nodiscard]] std::size_t count(Role role) const;
  void kill_all();

  // audit.cpp
  void watch_for_hangs(std::uint64_t now);
  void print_complaints();
  [[gnu::format(printf, 2, 3)]] void wrong(const char* format, ...);
  void drain(bool last);
  void audit_survivors(bool last);
  void audit_counts(ProcessCounts& then, pid_t pid, const char* who, std::uint64_t estacks, bool last, bool looks);
  void audit_nameserver();
  void audit_newcomer();
  void audit_calls();
  void end_survivors();

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
  /// ns that the conductor has been at work: what it is kept from its work, others are kept from theirs. All patience is
  /// counted in it.
  std::uint64_t worked_ = 0;
  std::uint64_t looked_for_hangs_ = 0;

  std::string socket_;
  pid_t nameserver_ = 0;
  std::uint64_t nameserver_again_at_ = 0;
  std::uint64_t nameserver_gone_ = 0;  ///< What had been worked when it was killed.
  std::uint64_t disturb_nameserver_at_ = 0;

  ProcessCounts server_, client_, lrpcd_;  ///< When they held nothing but what they always hold: after round 0.
  std::uint64_t lrpcd_sockets_ = 0;
  const bool looks_into_lrpcd_ = may_look_into_all();  ///< It lets nobody else see its descriptors and mappings.
  std::vector<UniqueFd> kept_connections_;             ///< Fault::lrpcd_kept_descriptor's.
  std::uint32_t complaints_printed_ = 0;
  std::uint64_t wrongs_ = 0;
  std::uint64_t calls_audited_ = 0, executed_ = 0;
};

}  // namespace lrpc::storm
