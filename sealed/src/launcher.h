// Starts one sealed domain: the parent's half (child.h has the other, and the order of things).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "child.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/sealed.h"
#include "supervisor.h"

namespace lrpc::sealed {

/// Used in this order: prepare() anywhere, start() on the thread that then uses the supervisor.
class Launcher {
 public:
  Launcher(std::vector<std::string> arguments, SealedOptions options);
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Everything that can be known to fail before there is a child. Blocks until the name is there, at most
  /// options.timeout.
  Status prepare();
  /// Forks, and returns when the program runs, bound and sealed. On failure, std::bad_alloc too, the child is gone.
  Status start();

  // Valid after start().
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] UniqueFd take_pidfd() noexcept { return std::move(pidfd_); }
  [[nodiscard]] Supervisor& supervisor() noexcept { return *supervisor_; }

 private:
  Status find_interface();
  Status make_request();
  [[nodiscard]] std::chrono::milliseconds left() const noexcept;
  [[nodiscard]] bool nameserver_comes_back() const;
  Status begin();
  void end_child() noexcept;
  Status fork_child();
  void await_report() const noexcept;
  Status introduce();
  Result<shim::Bound> receive_bound(int socket, std::vector<UniqueFd>& fds);
  [[nodiscard]] Error why_not_started();

  const std::vector<std::string> arguments_;
  SealedOptions options_;               ///< Without its socket:
  const shim::Stranger server_;         ///< a private server, which
  shim::ClosedAside socket_;            ///< may have left something in this end of its pair.
  std::vector<std::string> variables_;  ///< The program's environment.
  shim::ImportRequest request_;
  std::chrono::steady_clock::time_point began_;  ///< From here on options_.timeout counts.
  bool nameserver_seen_ = false;                 ///< It was there once.
  bool nameserver_lost_ = false;                 ///< It went before it had answered the child.
  ChildPlan plan_;
  UniqueFd program_;
  UniqueFd control_;  ///< Our end.
  UniqueFd childs_control_;
  shim::PeerSocket bell_;  ///< Ours, too, as long as the program runs: the server sees the hang-up when we go.
  UniqueFd pidfd_;
  pid_t pid_ = -1;
  std::unique_ptr<Supervisor> supervisor_;
};

}  // namespace lrpc::sealed
