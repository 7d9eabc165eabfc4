// Sends one packet with descriptors, as hostile peers do: the bytes are not checked.
#pragma once

#include <cstddef>
#include <span>

#include "lrpc/detail/shim/binder/packet.h"

namespace testing_lrpc {

/// Sends bytes as one packet, with copies of the descriptors. Returns whether the kernel took it. It does not if the
/// peer is gone, if there is no room (with MSG_DONTWAIT), or if there are more than 253 descriptors.
inline bool send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> fds = {}, int flags = 0) {
  return lrpc::shim::send_packet(socket, bytes, fds, flags) >= 0;
}

}  // namespace testing_lrpc
