// Starts one sealed domain: the parent's half (child.h shows the child's half and the order of events).
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "child.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/sealed.h"
#include "supervisor.h"

namespace lrpc::sealed {

/// Call prepare() on any thread, then start() on the thread that uses the supervisor afterwards.
class Launcher {
 public:
  Launcher(std::vector<std::string> arguments, SealedOptions options);
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Does everything that can fail before there is a child. Blocks until the name exists, at most options.timeout.
  Status prepare();
  /// Forks, and returns when the program runs, bound and sealed. On failure, also by std::bad_alloc, no child is left.
  Status start();

  // Valid after start().
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] UniqueFd take_pidfd() noexcept { return std::move(pidfd_); }
  [[nodiscard]] Supervisor& supervisor() noexcept { return *supervisor_; }

 private:
  Status find_interface();
  Status make_request();
  Result<UniqueFd> connect() const;
  [[nodiscard]] bool nameserver_comes_back() const;
  Status begin();
  void end_child() noexcept;
  Status fork_child();
  void await_report() const noexcept;
  Status introduce();
  Result<shim::Bound> receive_bound(int socket, std::vector<UniqueFd>& fds);
  [[nodiscard]] Error why_not_started();

  const std::vector<std::string> arguments_;
  SealedOptions options_;        ///< Its `socket` is moved to socket_.
  const shim::Stranger server_;  ///< The private server, if there is one.
  shim::ClosedAside socket_;     ///< Closed aside: a private server may have left descriptors in its queue.
  bool early_ = false;  ///< The private server's answer may have come before the kernel was asked who sends it.
  std::vector<std::string> variables_;  ///< The program's environment.
  shim::ImportRequest request_;
  shim::Wait wait_{kNoLimit};     ///< For options_.timeout, from prepare() on.
  bool nameserver_seen_ = false;  ///< A nameserver has been reached once.
  bool nameserver_lost_ = false;  ///< It was gone, or not to be reached, before it answered the child.
  ChildPlan plan_;
  UniqueFd program_;
  UniqueFd control_;  ///< Our end.
  UniqueFd childs_control_;
  shim::PeerSocket bell_;  ///< Our copy: the server sees a hang-up when this object or this process ends.
  UniqueFd pidfd_;
  pid_t pid_ = -1;
  std::unique_ptr<Supervisor> supervisor_;
};

}  // namespace lrpc::sealed
