// A server domain: what one Server object is made of.
#pragma once

#include "bindings.h"
#include "clerk.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/binder/closing_again.h"
#include "lrpc/detail/shim/system/watcher.h"
#include "poller/poller_grant.h"
#include "private_sockets.h"

namespace lrpc::server {

/// Thread-safe. The clerk and the private sockets make bindings; none of the three knows the domain.
class Domain {
 public:
  explicit Domain(ServerOptions options);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain();
  /// Instead of the destructor, on a thread that runs procedures, for which the destructor would wait: ends all names
  /// and bindings, waits for nothing, and returns true; then the domain must never be destroyed. On any other thread:
  /// false.
  [[nodiscard]] bool abandon();

  [[nodiscard]] Bindings& bindings() noexcept { return bindings_; }
  [[nodiscard]] Clerk& clerk() noexcept { return clerk_; }
  [[nodiscard]] PrivateSockets& private_sockets() noexcept { return private_sockets_; }
  [[nodiscard]] shim::Watcher& watcher() noexcept { return watcher_; }
  [[nodiscard]] const ServerOptions& options() const noexcept { return options_; }
  /// invalid_argument, with the option's name, if an option is meaningless: then nothing may be exported.
  [[nodiscard]] const Status& options_checked() const noexcept { return options_checked_; }
  [[nodiscard]] ServerStatistics statistics();

 private:
  const Status options_checked_;
  const ServerOptions options_;
  const shim::Watcher::Task wake_allocator_{[this] { clerk_.wake_allocator(); }};
  PollerGrant grant_;
  Bindings bindings_;
  Clerk clerk_;
  PrivateSockets private_sockets_;
  shim::Watcher watcher_;  ///< Declared after what its thread uses: the thread ends first.
  const shim::ClosingAgain closing_again_{watcher_};
};

}  // namespace lrpc::server
