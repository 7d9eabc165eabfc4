// Who else is there in a run, and what happens to its clients and servers meanwhile.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "core/child.h"
#include "core/placement.h"
#include "fresh_run.h"
#include "load/control_group.h"
#include "load/offline.h"
#include "load/third_party.h"
#include "situation.h"

namespace lrpc::bench {

/// Where clients and servers of a situation may run from the start, and everybody else.
struct RunSeats {
  Seat server;
  std::vector<Seat> clients;  ///< One each.
  Seat anywhere;
};
[[nodiscard]] RunSeats seats_of(const Situation& situation, const Cores& cores);

/// Made in the bench's own process. Must be destroyed after the clients and servers.
class Company {
 public:
  /// Starts all of it that does not need a client. Errors: not_permitted, not_supported: this user, or kernel, cannot.
  static Result<Company> start(const Situation& situation, const Cores& cores);

  /// For each client and server: puts it where it belongs.
  Status admit(const Child& process) const;
  /// Once the clients are there: the process that moves them begins.
  Status follow(std::span<const Child> clients, const Cores& cores);

  /// The run begins: from now on it counts what others get.
  void open_books();
  /// Does what is to happen within the run: returns when the last of it has happened, long before the run's end.
  Status disturb(std::chrono::milliseconds length, std::span<const Child> clients, std::span<const Child> servers,
                 const Cores& cores);
  /// The run is over: `run` gets what others got.
  void close_books(FreshRun& run, std::chrono::milliseconds length);

 private:
  explicit Company(const Situation& situation) : situation_(&situation) {}
  const Situation* situation_;
  std::optional<ControlGroup> group_;
  std::vector<Child> hogs_;
  double hogs_before_ = 0;
  std::optional<ThirdParty> third_;
  std::optional<OfflineProcessor> offline_;
  std::vector<Child> movers_;
};

/// Processor time of all of them so far, in seconds.
[[nodiscard]] double seconds_of(std::span<const Child> processes);

}  // namespace lrpc::bench
