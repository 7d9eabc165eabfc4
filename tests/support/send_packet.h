// One packet with descriptors, as hostile peers send it: nothing is checked, whatever the bytes are.
#pragma once

#include <cstddef>
#include <span>

#include "lrpc/detail/shim/binder/packet.h"

namespace testing_lrpc {

/// Sends bytes as one packet, with copies of the descriptors. Whether the kernel took it: the peer was there, there was
/// room (with MSG_DONTWAIT), and no more descriptors than it allows (253).
inline bool send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> fds = {}, int flags = 0) {
  return lrpc::shim::send_packet(socket, bytes, fds, flags) >= 0;
}

}  // namespace testing_lrpc
