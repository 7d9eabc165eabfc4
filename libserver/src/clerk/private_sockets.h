// Private bindings: over a socketpair, without any name; the server's clerk is the binder.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "call/served_binding.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/system/watcher.h"

namespace lrpc::server {

class Bindings;

/// Speaks the binder protocol to each private client over its own socket, on the watcher's thread. Thread-safe.
class PrivateSockets {
 public:
  /// The references must outlive it; the watcher may be constructed later.
  PrivateSockets(Bindings& bindings, shim::Watcher& watcher) noexcept : bindings_(bindings), watcher_(watcher) {}

  Status serve_over(shim::PeerSocket socket, std::shared_ptr<ServedInterface> interface);
  /// Hangs up on all sockets. Afterwards no private binding is made.
  void close();

 private:
  struct PrivateSocket {
    shim::PeerSocket fd;
    shim::Watcher::Id watch = 0;  ///< Under the lock.
    std::shared_ptr<ServedInterface> interface;
    int early = 0;  ///< Bytes that may have been sent before the kernel was asked for credentials.
  };

  void on_message(const std::shared_ptr<PrivateSocket>& socket, shim::Watcher::Id watch) noexcept;
  Result<shim::BinderMessage> bind(const PrivateSocket& socket, const shim::BinderMessage& message, bool early,
                                   shim::NextSender told);
  void hang_up(const std::shared_ptr<PrivateSocket>& socket, shim::Watcher::Id watch);

  Bindings& bindings_;
  shim::Watcher& watcher_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<PrivateSocket>> sockets_;
  bool closed_ = false;
};

}  // namespace lrpc::server
