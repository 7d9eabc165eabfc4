// A complete host in a network namespace: an lrpcd, an lrpc-netd and a server.
#pragma once

#include <string>
#include <vector>

#include "core/child.h"
#include "core/placement.h"
#include "core/private_directory.h"
#include "lrpc/detail/shim/result.h"
#include "netrpc/test_support/namespaces.h"

namespace lrpc::bench {

/// Its processes are children that end with this object, or with the bench.
struct WholeHost {
  /// Starts all processes in `where`, on `seat`. Blocks until the names can be imported, at most some 10 s for each
  /// process. `netd_options`: options of lrpc-netd besides --nameserver and --log-level. Precondition: the calling
  /// process has one thread. Errors: system_error, timed_out, peer_gone (a program did not start; the reason is on
  /// stderr).
  Status start(const netrpc::test::Namespace& where, const Seat& seat, const std::vector<std::string>& netd_options);
  /// Writes a file of keys for lrpc-netd and returns its path. Errors: system_error.
  [[nodiscard]] Result<std::string> write_keys(const std::string& text) const;
  [[nodiscard]] std::string socket() const { return directory.file("lrpcd.sock"); }

  PrivateDirectory directory;
  Child lrpcd;
  Child server;  ///< Exports LrpcDomains::kExportedName.
  Child netd;
};

}  // namespace lrpc::bench
