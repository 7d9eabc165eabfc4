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
  /// Has `hear` receive one message, and then those that already lay in the socket when the last call returned, up to
  /// 32, until it returns false. Newer ones wait for the watcher's next look: that look first reports the bindings that
  /// ended before they were sent, and a client may have ended one to have room for the next. (That holds while at most
  /// 1024 descriptors are ready.) On the watcher's thread.
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
  std::size_t old_ = 0;        ///< Bytes of the messages that waited when some were last heard, and still wait.
  shim::Watcher::Task flush_;  ///< When the nameserver is to be asked again whether it takes the next one.
};

}  // namespace lrpc::server
