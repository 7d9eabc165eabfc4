// The two other domains of the rows of lrpc: a private nameserver and a server, each a process of its own.
#pragma once

#include <memory>
#include <string>

#include "core/child.h"
#include "core/placement.h"
#include "core/private_directory.h"
#include "lrpc/detail/client/import/binding.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/nameserver.h"

namespace lrpc::bench {

/// A nameserver on a private socket in a temporary directory. The destructor ends it and removes the directory.
class PrivateNameserver {
 public:
  /// With `options`, except for the socket's path. If options.mode is set, other users can pass through the directory,
  /// so that only the mode decides who may use the socket.
  static Result<std::unique_ptr<PrivateNameserver>> start(nameserver::NameserverOptions options = {});
  ~PrivateNameserver();
  [[nodiscard]] const std::string& socket() const noexcept { return socket_; }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }

 private:
  PrivateNameserver() = default;
  PrivateDirectory directory_;
  const std::string socket_ = directory_.file("lrpcd.sock");
  Child process_;
};

/// Starts a process that exports bench.lrpc as kExportedName, and async.lrpc as kAsyncName (LrpcDomains), at a running
/// nameserver. `options` apply, except for the nameserver. Returns once the names can be imported.
Result<Child> start_bench_server(const std::string& nameserver, const Seat& seat, const ServerOptions& options = {});

/// A nameserver, and a bench server (start_bench_server()) that exports at it.
class LrpcDomains {
 public:
  static constexpr const char* kExportedName = "bench";
  static constexpr const char* kAsyncName = "bench-async";
  /// Returns once the names can be imported. `options` are the server's, except for the nameserver.
  static Result<std::unique_ptr<LrpcDomains>> start(const Seat& server, const ServerOptions& options = {},
                                                    nameserver::NameserverOptions nameserver = {});
  /// The options with which a client imports kExportedName.
  [[nodiscard]] ImportOptions import_options(Gate gate) const;
  [[nodiscard]] pid_t server_pid() const noexcept { return server_.pid(); }
  [[nodiscard]] pid_t nameserver_pid() const noexcept { return nameserver_->pid(); }

 private:
  LrpcDomains() = default;
  std::unique_ptr<PrivateNameserver> nameserver_;
  Child server_;
};

}  // namespace lrpc::bench
