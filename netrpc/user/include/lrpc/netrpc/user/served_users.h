// The graph's side of user processes: serves UserObjects.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lrpc/netrpc/user/user_object.h"
#include "lrpc/server.h"

namespace lrpc::netuser {

class UserService;

/// Serves UserCalls (user_calls.lrpc) for any number of UserObjects, which outlive it. Thread-safe. The processes are
/// not trusted. They can only make the threads that serve them wait (an E-stack for each of a binding's eight A-stacks,
/// whose number does not grow), and use up what their line of the graph allows. ServerOptions limits their bindings.
class ServedUsers {
 public:
  explicit ServedUsers(ServerOptions options);
  ServedUsers(const ServedUsers&) = delete;
  /// Removes all processes from the graph; their bindings are revoked. Not inside the monitor.
  ~ServedUsers();
  /// Removes all processes from the graph, but keeps names and bindings. From now on CreateProtocol is refused
  /// (call_cancelled). Not inside the monitor.
  void stop() noexcept;

  /// Exports `user` as exported_name(), a name that only root and lrpcd's own user can export. `authorise`: as
  /// ExportOptions'. Errors: those of Server::export_interface(). Not inside the monitor.
  Status serve(UserObject& user, std::function<Status(const ClientCredentials&)> authorise = {});
  /// Serves `user`, without a name, to the process that holds the other end of `socket`.
  Status serve_over(UserObject& user, UniqueFd socket);

 private:
  UserService& add(UserObject& user);
  static ExportOptions offer(UserService& service);

  std::mutex mutex_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<UserService>> services_;
  Server server_;
};

}  // namespace lrpc::netuser
