// Questions to the kernel over rtnetlink. It answers within the request, which blocks while another process changes
// links.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "netrpc/devices/arp/rtnetlink.h"

namespace lrpc::netrpc::rtnetlink {

/// The caller sets `nlmsg_type`, and NLM_F_DUMP in `nlmsg_flags` if many messages answer it; Requests::ask() sets the
/// rest.
template <class Body>
struct Request {
  nlmsghdr header{};
  Body body{};
};

/// A socket for requests. It is opened once, before a sandbox forbids opening another one. Not thread-safe.
class Requests {
 public:
  /// Errors: system_error.
  Status open() noexcept {
    socket_ = UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (!socket_) return system_error("socket(AF_NETLINK)", errno);
    // If the answer is not there after the request, ask() does not wait for long.
    const timeval patience{0, 50'000};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return {};
  }

  /// Sends `wanted`, a Request and perhaps an attribute, and calls visit(type, payload) for each message of the answer.
  /// Returns 0 or an errno: the kernel's answer, or why there is none. EINTR: the kernel's data changed meanwhile, and
  /// the answer may be incomplete.
  template <class Wanted, class Visit>
  [[nodiscard]] int ask(Wanted& wanted, Visit visit) noexcept {
    wanted.header.nlmsg_len = sizeof wanted;
    wanted.header.nlmsg_flags |= NLM_F_REQUEST;
    wanted.header.nlmsg_seq = ++sequence_;
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    if (::sendto(socket_.get(), &wanted, sizeof wanted, 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) <
        0)
      return errno;
    alignas(nlmsghdr) std::array<std::byte, 16384> buffer;
    const bool many = (wanted.header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    int error = 0;
    for (bool complete = false; !complete;) {
      sockaddr_nl sender{};
      socklen_t sender_size = sizeof sender;
      const ssize_t size = ::recvfrom(socket_.get(), buffer.data(), buffer.size(), 0,
                                      reinterpret_cast<sockaddr*>(&sender), &sender_size);
      if (size < 0) return errno;
      if (sender_size < sizeof sender || sender.nl_pid != 0) continue;  // other processes can send here, too
      messages(std::span(buffer).first(static_cast<std::size_t>(size)),
               [&](const nlmsghdr& header, std::span<const std::byte> payload) {
                 if (complete || header.nlmsg_seq != wanted.header.nlmsg_seq)
                   return;  // a late answer to an earlier one
                 if ((header.nlmsg_flags & NLM_F_DUMP_INTR) != 0) error = EINTR;
                 complete = !many || header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR;
                 if (header.nlmsg_type == NLMSG_ERROR) {
                   nlmsgerr said{};
                   error = take(payload, said) && said.error < 0 ? -said.error : EIO;
                 } else if (header.nlmsg_type == NLMSG_DONE) {
                   int said = 0;
                   if (take(payload, said) && said < 0) error = -said;
                 } else {
                   visit(header.nlmsg_type, payload);
                 }
               });
    }
    return error;
  }

 private:
  UniqueFd socket_;
  std::uint32_t sequence_ = 0;
};

/// A socket that receives the kernel's news of `groups` (bits 1 << (RTNLGRP_ - 1)). Errors: system_error.
inline Result<int> open_news(std::uint32_t groups) noexcept {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return system_error("socket(AF_NETLINK)", errno);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_error("bind(AF_NETLINK)", errno);
  return socket.release();
}

/// Whether a datagram has come from the kernel, and not from another process. `from`: its sender's address.
[[nodiscard]] inline bool from_kernel(std::span<const std::byte> from) noexcept {
  sockaddr_nl sender{};
  if (from.size() < sizeof sender) return false;
  std::memcpy(&sender, from.data(), sizeof sender);
  return sender.nl_family == AF_NETLINK && sender.nl_pid == 0;
}

}  // namespace lrpc::netrpc::rtnetlink
