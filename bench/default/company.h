// The other processes of a run, and what happens to its clients and servers during it.
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

/// Where the clients, the servers and all other processes of a situation may run from the start.
struct RunSeats {
  Seat server;
  std::vector<Seat> clients;  ///< One for each client.
  Seat anywhere;
};
[[nodiscard]] RunSeats seats_of(const Situation& situation, const Cores& cores);

/// Constructed in the bench's own process. Must be destroyed after the clients and servers.
class Company {
 public:
  /// Starts everything that needs no client. Errors: not_permitted, not_supported: this user or kernel cannot do it.
  static Result<Company> start(const Situation& situation, const Cores& cores);

  /// Moves a client or server into the situation's control group, if there is one.
  Status admit(const Child& process) const;
  /// Call it once the clients run: for Where::moved, starts the processes that move them from processor to processor.
  Status follow(std::span<const Child> clients, const Cores& cores);

  /// Call it when the run begins: from now on the others' processor time and work count.
  void open_books();
  /// Makes the changes that the situation has during a run. Returns after the last of them, long before the run's end.
  Status disturb(std::chrono::milliseconds length, std::span<const Child> clients, std::span<const Child> servers,
                 const Cores& cores);
  /// Call it when the run is over: stores in `run` what the others got.
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

/// The processor time of all these processes so far, in seconds.
[[nodiscard]] double seconds_of(std::span<const Child> processes);

}  // namespace lrpc::bench
