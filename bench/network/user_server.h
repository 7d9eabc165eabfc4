// A server that is a process beside its graph: what a user process costs.
#pragma once

#include <sys/types.h>

#include <memory>

#include "lrpc/netrpc/user/served_users.h"

namespace lrpc::bench {

/// Starts lrpc-bench-user, which is `user` of a graph in this process and answers each message with a byte. Ends it.
class UserServer {
 public:
  /// Blocks until it serves. Not inside the monitor. Errors: system_error, peer_gone (it does not serve).
  static Result<std::unique_ptr<UserServer>> start(netuser::UserObject& user);
  UserServer(const UserServer&) = delete;
  ~UserServer();

 private:
  UserServer() = default;
  netuser::ServedUsers served_{ServerOptions{}};
  pid_t pid_ = -1;
};

}  // namespace lrpc::bench
