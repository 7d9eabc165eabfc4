// Two complete hosts: network namespaces joined by veth, with an lrpcd and an lrpc-netd in each, a server that is
// exported to the other host, and a bare ping-pong on the same wire as the floor.
#pragma once

#include <memory>
#include <string>

#include "core/child.h"
#include "core/placement.h"
#include "lrpc/detail/client/import/binding.h"
#include "whole_host.h"
#include "wire_pair.h"

namespace lrpc::bench {

/// How lrpc-netd is started.
struct RemotePath {
  bool authenticated = true;  ///< --keys; otherwise --insecure.
  bool udp = false;           ///< --udp; otherwise the built-in graph over Ethernet and IP.
};

/// All processes are children that end with this object, or with the bench. Precondition of start(): the calling
/// process has one thread.
class RemoteHosts {
 public:
  /// All processes of the client's host run on `seats.client`, all of the server's on `seats.server`. Returns once the
  /// names can be imported. Errors: system_error, timed_out, peer_gone (a program did not start; the reason is on the
  /// standard error). Throws what making namespaces throws.
  static Result<std::unique_ptr<RemoteHosts>> start(const Seats& seats, const RemotePath& path);
  RemoteHosts(const RemoteHosts&) = delete;

  /// The server on the other host. LrpcDomains::kExportedName is the one on the client's own host.
  static constexpr const char* kRemoteName = "bench@10.0.0.2";
  [[nodiscard]] ImportOptions import_options() const;
  /// The client's end of the ping-pong, connected; to be used by a child process.
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
