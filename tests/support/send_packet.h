// One packet with descriptors, as hostile peers send it: nothing is checked, whatever the bytes are.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace testing_lrpc {

/// Sends bytes as one packet, with copies of the descriptors. Whether the kernel took it: the peer was there, there was
/// room (with MSG_DONTWAIT), and no more descriptors than it allows (253).
inline bool send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> fds = {}, int flags = 0) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};  // sendmsg(2) only reads
  std::vector<char> control(CMSG_SPACE(fds.size_bytes()));         // operator new aligns it as a cmsghdr
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket, &header, flags | MSG_NOSIGNAL) >= 0;
}

}  // namespace testing_lrpc
