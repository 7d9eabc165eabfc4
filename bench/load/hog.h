// The loads of the scenario matrix: processes that compute all the time, and groups and policies that make callers
// unequal.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "control_group.h"
#include "core/child.h"
#include "core/matrix_cell.h"

namespace lrpc::bench {

/// A process that computes for ever, of ordinary priority. Made in the bench's own process.
Result<Child> start_hog(const Seat& seat);

/// What a cell has besides its callers. Must be destroyed after the processes that joined it.
class Surroundings {
 public:
  /// Starts the hogs that `cell` asks for. In pinned placements a single hog sits on the client's processor, otherwise
  /// wherever the scheduler puts it; those "on every core" are pinned, one to each. Errors: what the load needs and
  /// this user or kernel does not have.
  static Result<Surroundings> create(const Cell& cell, const Cores& cores);

  /// Puts a client (a server) where the load wants it: into a group of its own of four times (of just) the ordinary
  /// weight, or nowhere.
  Status admit_client(pid_t process) const;
  Status admit_server(pid_t process) const;

 private:
  std::optional<ControlGroup> hog_group_;
  std::optional<ControlGroup> client_group_;
  std::optional<ControlGroup> server_group_;
  std::vector<Child> hogs_;  // go before their group
};

/// Makes the calling thread a real-time one (SCHED_FIFO, lowest priority).
Status become_fifo() noexcept;
/// Whether this user may do so: tries it with the calling thread, which must be an ordinary one.
Status try_fifo() noexcept;

}  // namespace lrpc::bench
