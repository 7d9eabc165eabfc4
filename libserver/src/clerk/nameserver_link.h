// A server's connection to a nameserver.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/watcher.h"

namespace lrpc::server {

/// One connection, with the messages that the nameserver was not ready to take. A thread that sends keeps it alive.
class NameserverLink {
 public:
  static std::shared_ptr<NameserverLink> make(UniqueFd socket, shim::Watcher& watcher);

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Shuts the connection down, so that both ends and the watcher notice. close(2) is not enough: a fork child may hold
  /// the socket, too. Any thread.
  void break_off() noexcept;
  /// Sends a message for whose answer nobody waits: now, or, if the nameserver's queue is full, later. On the watcher's
  /// thread.
  void send_soon(shim::BinderMessage message);
  /// Calls `hear`, which receives one message: once, and again for each message that was in the socket already when the
  /// last hear_several() returned; 32 times at most, and not after it has returned false. On the watcher's thread.
  ///
  /// Newer messages wait for the watcher's next look, because a client may have ended one binding to have room for the
  /// next: that look first reports the ends that happened before a message was sent, then the message (if at most 1024
  /// descriptors are ready).
  template <class Hear>
  void hear_several(Hear&& hear) {
    constexpr int kMost = 32;
    for (int i = 0; i < kMost; ++i) {
      const std::size_t next = size_of_next();
      if (i != 0 && (next == 0 || next > old_)) break;
      old_ -= std::min(next, old_);
      if (!hear()) return;
    }
    old_ = size_of_all();
  }

  shim::Watcher::Id watch = 0;  ///< Under the clerk's lock.
  /// The watcher thread's own.
  Error last_words{Errc::peer_gone, "the nameserver hung up"};

 private:
  NameserverLink(UniqueFd socket, shim::Watcher& watcher) : fd_(std::move(socket)), watcher_(watcher) {}
  void flush();
  [[nodiscard]] std::size_t size_of_next() const noexcept;  ///< In bytes; 0: there is none.
  [[nodiscard]] std::size_t size_of_all() const noexcept;

  const UniqueFd fd_;
  shim::Watcher& watcher_;
  // The watcher thread's own.
  std::deque<shim::BinderMessage> outbox_;  ///< What the nameserver was not ready to take.
  std::chrono::milliseconds outbox_pause_{1};
  std::size_t old_ = 0;        ///< Bytes still unread of what was in the socket when hear_several() last returned.
  shim::Watcher::Task flush_;  ///< Calls flush() again after a pause.
};

}  // namespace lrpc::server
