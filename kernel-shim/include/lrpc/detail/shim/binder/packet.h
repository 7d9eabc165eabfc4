// One packet on an AF_UNIX socket, with copies of descriptors. Nothing is checked. receive_packet() is only for what
// this process or its own child sends, between fork and exec; for what strangers send, receive_message() checks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace lrpc::shim {

/// The most descriptors that the kernel lets one packet carry (SCM_MAX_FD, unix(7)).
inline constexpr std::size_t kMostPacketFds = 253;

/// Sends `bytes` with copies of `fds`. As sendmsg(2): the bytes sent, or -1 and errno (EINVAL for more than
/// kMostPacketFds). A receiver that asks for the sender (SO_PASSCRED) is told the effective user and group of this
/// thread, as with SO_PEERCRED. A signal does not interrupt it, and it raises no SIGPIPE. Async-signal-safe.
ssize_t send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> fds = {},
                    int flags = 0) noexcept;
/// Receives a packet and up to `fds.size()` descriptors, which are close-on-exec and the caller's; -1 for each that did
/// not come. As recvmsg(2): the bytes received, 0 at the end, or -1 and errno. Async-signal-safe.
ssize_t receive_packet(int socket, std::span<std::byte> room, std::span<int> fds = {}, int flags = 0) noexcept;

}  // namespace lrpc::shim
