#include "nameserver_link.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdint>
#include <new>
#include <utility>

namespace lrpc::server {

/// With more unsent messages than this the nameserver counts as gone.
constexpr std::size_t kMostInOutbox = 64;
/// Between two attempts to send.
constexpr std::chrono::milliseconds kLongestOutboxPause{100};

std::shared_ptr<NameserverLink> NameserverLink::make(UniqueFd socket, shim::Watcher& watcher) {
  std::shared_ptr<NameserverLink> link(new NameserverLink(std::move(socket), watcher));
  link->flush_ = shim::Watcher::Task([hold = std::weak_ptr(link)] {
    if (const auto held = hold.lock()) held->flush();
  });
  return link;
}

void NameserverLink::break_off() noexcept { ::shutdown(fd_.get(), SHUT_RDWR); }

void NameserverLink::send_soon(shim::BinderMessage message) {
  outbox_.push_back(std::move(message));
  if (outbox_.size() == 1) flush();
  if (outbox_.size() > kMostInOutbox) break_off();
}

std::size_t NameserverLink::size_of_next() const noexcept {
  const ssize_t size = ::recv(fd_.get(), nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

std::size_t NameserverLink::size_of_all() const noexcept {
  int size = 0;
  return ::ioctl(fd_.get(), FIONREAD, &size) == 0 && size > 0 ? static_cast<std::size_t>(size) : 0;
}

void NameserverLink::flush() {
  while (!outbox_.empty()) {
    Errc sent = Errc::system_error;
    try {
      sent = shim::send_message(fd_.get(), outbox_.front(), kDoNotWait).code();
    } catch (const std::bad_alloc&) {  // end the connection: others would wait for this message
    }
    if (sent == Errc::limit_reached && watcher_.post(flush_, static_cast<std::uint32_t>(outbox_pause_.count()))) {
      outbox_pause_ = std::min(outbox_pause_ * 2, kLongestOutboxPause);
      return;
    }
    if (sent != Errc::ok) {  // the end, which the watcher sees
      break_off();
      outbox_.clear();
      return;
    }
    outbox_.pop_front();
    outbox_pause_ = std::chrono::milliseconds(1);
  }
}

}  // namespace lrpc::server
