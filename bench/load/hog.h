// The loads of the scenario matrix: processes that compute all the time (hogs), and control groups and scheduling
// policies that make callers unequal.
#pragma once

#include <optional>
#include <vector>

#include "control_group.h"
#include "core/child.h"
#include "core/matrix_cell.h"

namespace lrpc::bench {

/// A process of ordinary priority that computes for ever. Started from the bench's own process.
Result<Child> start_hog(const Seat& seat);

/// What runs in a cell besides the callers. Must be destroyed after the processes that joined it.
class Surroundings {
 public:
  /// Starts the hogs that `cell` asks for. A single hog runs on the client's processor in pinned placements, otherwise
  /// wherever the scheduler puts it; with "every core" one hog is pinned to each. Fails if the load needs something
  /// that this user or kernel does not have.
  static Result<Surroundings> create(const Cell& cell, const Cores& cores);

  /// If the load has unequal weights, moves a client into a group with four times the default weight, and a server into
  /// a group with the default weight. Otherwise does nothing.
  Status admit_client(pid_t process) const;
  Status admit_server(pid_t process) const;

 private:
  std::optional<ControlGroup> hog_group_;
  std::optional<ControlGroup> client_group_;
  std::optional<ControlGroup> server_group_;
  std::vector<Child> hogs_;  // destroyed before their group
};

/// Gives the calling thread the real-time policy SCHED_FIFO, at the lowest priority.
Status become_fifo() noexcept;
/// Whether this user may use SCHED_FIFO: sets it for the calling thread, which must have the ordinary policy, and
/// resets it.
Status try_fifo() noexcept;

}  // namespace lrpc::bench
