// The graph's side of user processes: serves UserObjects.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lrpc/netrpc/user/user_object.h"
#include "lrpc/server.h"

namespace lrpc::netuser {

/// Serves UserCalls (user_calls.lrpc) for any number of UserObjects, which outlive it. Thread-safe. The processes
/// are not trusted: they can make the threads that serve them wait (an E-stack for each of a binding's eight A-stacks,
/// which do not grow) and use up what their line of the graph allows, and nothing else. How many bindings they may have
/// is for ServerOptions to say.
class ServedUsers {
 public:
  explicit ServedUsers(ServerOptions options);
  ServedUsers(const ServedUsers&) = delete;
  /// Ends all processes' part in the graph; they see their bindings revoked. Not inside the monitor.
  ~ServedUsers();
  /// The same, but for the names and the bindings: CreateProtocol is refused (call_cancelled) from now on. Not inside
  /// the monitor.
  void stop() noexcept;

  /// Exports it as exported_name(): for root and lrpcd's own user. `authorise`: as ExportOptions'. Errors: those of
  /// Server::export_interface(). Not inside the monitor.
  Status serve(UserObject& user, std::function<Status(const ClientCredentials&)> authorise = {});
  /// Serves it to who holds the other end of `socket`, without a name.
  Status serve_over(UserObject& user, UniqueFd socket);

 private:
  class Service;
  Service& add(UserObject& user);
  ExportOptions offer(Service& service);

  std::mutex mutex_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<Service>> services_;
  std::unique_ptr<Server> server_;
};

}  // namespace lrpc::netuser
