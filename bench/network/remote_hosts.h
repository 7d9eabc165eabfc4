// Two hosts as their users have them: network namespaces joined by veth, an lrpcd and an lrpc-netd in each, a server
// that is exported to the other host, and a bare ping-pong on the same wire to hold the calls against.
#pragma once

#include <memory>
#include <string>

#include "core/child.h"
#include "core/placement.h"
#include "lrpc/detail/client/import/binding.h"
#include "whole_host.h"
#include "wire_pair.h"

namespace lrpc::bench {

/// What lrpc-netd is started with.
struct RemotePath {
  bool authenticated = true;  ///< --keys; else --insecure.
  bool udp = false;           ///< --udp; else the built-in graph over Ethernet and IP.
};

/// All processes are children that end with this object, and with the bench. Precondition of start(): the calling
/// process has one thread.
class RemoteHosts {
 public:
  /// Everything of the client's host sits on `seats.client`, everything of the server's on `seats.server`. Returns once
  /// the names can be imported. Errors: system_error, peer_gone (a program did not start; it said why on the standard
  /// error). Throws what namespaces throw.
  static Result<std::unique_ptr<RemoteHosts>> start(const Seats& seats, const RemotePath& path);
  RemoteHosts(const RemoteHosts&) = delete;

  /// The name of the server on the other host. LrpcDomains::kExportedName is one on the client's own.
  static constexpr const char* kRemoteName = "bench@10.0.0.2";
  [[nodiscard]] ImportOptions import_options() const;
  /// The client's end of the ping-pong, connected: for a child process.
  [[nodiscard]] BareSocket& bare() noexcept { return *bare_; }

 private:
  RemoteHosts() = default;
  Status start_end(WholeHost& end, const netrpc::test::Namespace& where, const Seat& seat, const RemotePath& path,
                   const std::string& key_of_other, bool exports);
  Status start_bare(const Seats& seats, SocketKind kind);

  Wire wire_;
  WholeHost here_;
  WholeHost there_;
  std::optional<BareSocket> bare_;
  Child echo_;
};

}  // namespace lrpc::bench
