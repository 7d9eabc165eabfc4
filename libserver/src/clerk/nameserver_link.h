// A server's connection to a nameserver.
#pragma once

#include <chrono>
#include <deque>
#include <memory>

#include "lrpc/shim/binder/binder_protocol.h"
#include "lrpc/shim/system/fd.h"
#include "lrpc/shim/system/watcher.h"

namespace lrpc::server {

/// From connect to hang-up, with what the nameserver was not ready to take. A thread that sends holds it.
class NameserverLink {
 public:
  static std::shared_ptr<NameserverLink> make(UniqueFd socket, shim::Watcher& watcher);

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Both ends see the end, and so does the watcher: not close alone, for a fork child of ours may hold the socket.
  /// Any thread.
  void break_off() noexcept;
  /// Sends what nobody waits for: now, or when the nameserver takes it. It may have more to read than its queue holds
  /// just now. On the watcher's thread.
  void send_soon(shim::BinderMessage message);

  shim::Watcher::Id watch = 0;  ///< Under the clerk's lock.
  /// The watcher thread's own.
  Error last_words{Errc::peer_gone, "the nameserver hung up"};

 private:
  NameserverLink(UniqueFd socket, shim::Watcher& watcher) : fd_(std::move(socket)), watcher_(watcher) {}
  void flush();

  const UniqueFd fd_;
  shim::Watcher& watcher_;
  // The watcher thread's own.
  std::deque<shim::BinderMessage> outbox_;  ///< What the nameserver was not ready to take.
  std::chrono::milliseconds outbox_pause_{1};
  shim::Watcher::Task flush_;  ///< When the nameserver is to be asked again whether it takes the next one.
};

}  // namespace lrpc::server
