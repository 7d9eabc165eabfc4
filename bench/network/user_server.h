// A server in a process beside its graph, to measure what a user process costs.
#pragma once

#include <sys/types.h>

#include <memory>

#include "lrpc/netrpc/user/served_users.h"

namespace lrpc::bench {

/// Starts lrpc-bench-user as the process behind `user`, an object of a graph in this process. It answers each message
/// with one byte. The destructor kills it.
class UserServer {
 public:
  /// Blocks until the process serves. Do not call it inside the monitor. Errors: system_error, peer_gone (it does not
  /// serve).
  static Result<std::unique_ptr<UserServer>> start(netuser::UserObject& user);
  UserServer(const UserServer&) = delete;
  ~UserServer();

 private:
  UserServer() = default;
  netuser::ServedUsers served_{ServerOptions{}};
  pid_t pid_ = -1;
};

}  // namespace lrpc::bench
