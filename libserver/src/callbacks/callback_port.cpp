#include "lrpc/detail/server/callback_port.h"

#include <fcntl.h>

#include <cerrno>

#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/call/limits.h"

namespace lrpc::server {

CallbackPort::Attempt::Attempt(CallbackPort& wanted, std::chrono::milliseconds patience) : port(wanted) {
  std::unique_lock lock(port.mutex_);
  const auto until = std::chrono::steady_clock::now() + shim::Deadline::span(patience);
  if (!port.bound_.wait_until(lock, until, [&] { return !port.binding_ || port.closed_; })) {
    why_not = Error{Errc::timed_out, "the client has not answered another thread yet"};
  } else if (port.closed_) {
    why_not = Error{Errc::binding_revoked, kGone};
  } else if (port.kept_.good(false)) {
    stub = port.kept_.stub;
  } else if (port.offered_) {
    // A copy, so that a client that is only slow can be asked again.
    socket.reset(fcntl(port.offered_.get(), F_DUPFD_CLOEXEC, 0));
    if (!socket) {
      why_not = system_error("dup of a client's offer", errno);
      return;
    }
    port.binding_ = binding = true;
  } else if (port.kept_.stub != nullptr) {
    why_not = Error{Errc::binding_revoked, "the client serves its callbacks no more"};
  } else {
    why_not =
        Error{Errc::not_supported, "the client has not offered to be called back: it must call serve_callbacks()"};
  }
}

CallbackPort::Attempt::~Attempt() {
  if (socket) {  // not used; it may be the last copy by now
    shim::Stranger client = shim::stranger_at(socket.get());
    shim::close_aside(std::move(socket), std::move(client));
  }
  if (!binding) return;
  std::lock_guard lock(port.mutex_);
  port.binding_ = false;
  port.bound_.notify_all();
}

Status CallbackPort::Attempt::keep(Kept kept) {
  shim::PeerSocket used;
  Kept before;  // released after the lock: it may unmap
  std::lock_guard lock(port.mutex_);
  if (port.closed_) return Errc::binding_revoked;
  before = std::exchange(port.kept_, std::move(kept));
  used = std::move(port.offered_);
  return {};
}

Error CallbackPort::Attempt::failed(Error why) {
  if (why.code == Errc::timed_out || why.code == Errc::limit_reached || why.code == Errc::system_error) return why;
  shim::PeerSocket used;  // closed after the lock
  std::lock_guard lock(port.mutex_);
  used = std::move(port.offered_);
  return why;
}

void CallbackPort::offer(shim::PeerSocket socket) {
  if (!declared_ || !socket) return;
  shim::PeerSocket before;  // closed after the lock
  std::lock_guard lock(mutex_);
  // One at a time: an accepted offer is not replaced by the next one while its client is there.
  if (closed_ || binding_ || kept_.good(true) || (offered_ && !shim::hung_up(offered_.get()))) return;
  before = std::move(offered_);
  shim::accept_offer(socket.get(), shim::BellMessage::callback);
  offered_ = std::move(socket);
}

void CallbackPort::close() noexcept {
  shim::PeerSocket offered;
  Kept kept;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    offered = std::move(offered_);
    kept = kept_;  // not replaced any more: closed_ is set
    bound_.notify_all();
  }
  if (kept.stub != nullptr) kept.revoke(kept.stub.get());
}

bool CallbackPort::keeps_stub() noexcept {
  std::lock_guard lock(mutex_);
  return kept_.stub != nullptr;
}

std::shared_ptr<void> CallbackPort::take_stub() noexcept {
  std::lock_guard lock(mutex_);
  return std::exchange(kept_, {}).stub;
}

}  // namespace lrpc::server
