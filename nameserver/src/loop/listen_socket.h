// The socket that a nameserver listens on, and the file it is known by.
#pragma once

#include <sys/types.h>

#include <string>

#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::nameserver {

/// A listening, non-blocking SEQPACKET socket, and its file as long as the object lives. Move-only.
class ListenSocket {
 public:
  /// Makes the directory (0755 for the system's path, else 0700) and the socket with exactly `mode`. Replaces a socket
  /// that nobody listens on. name_taken: somebody listens; the text says who. Blocks while another nameserver starts
  /// there, and while one there is dying or does not answer: two seconds at most for each. Meanwhile the file
  /// `path`.lock exists. timed_out: another starting nameserver has kept that lock. call_cancelled: `stop_fd` (-1:
  /// none) was readable while it blocked.
  static Result<ListenSocket> open(std::string path, mode_t mode, int stop_fd = -1);

  ListenSocket(ListenSocket&& other) noexcept = default;
  ListenSocket& operator=(ListenSocket&&) = delete;
  /// Removes the file, unless it is another one by now, and hangs up on clients not accepted yet.
  ~ListenSocket();

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// How the sockets that it accepts are made.
  [[nodiscard]] shim::PeerSocket::Made made() const noexcept { return made_; }

 private:
  ListenSocket() = default;

  std::string path_;
  UniqueFd socket_;
  shim::PeerSocket::Made made_ = shim::PeerSocket::Made::here;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace lrpc::nameserver
