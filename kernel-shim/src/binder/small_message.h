// A few bytes, perhaps with a descriptor, over a socket that nobody waits at: what bells and lines carry.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// What came: a private copy, of a peer that may say anything.
struct SmallMessage {
  static constexpr std::size_t kLongest = 8;  ///< More than any that is wanted has, so that a longer one is seen.

  std::array<std::byte, kLongest> bytes{};
  std::size_t size = 0;
  UniqueFd fd;               ///< As of take_in(): a socket belongs into a PeerSocket.
  bool fds_refused = false;  ///< What came is not what could be wanted: too many, or of another kind.
  bool fds_lost = false;     ///< Some came for which this process had no room.
};

/// Takes one message of a stranger's, of which at most kLongest bytes are looked at. nullopt: nothing is there.
/// Errors: peer_gone, also where the other side is as good as gone: what it has sent is better left unread; the text
/// names the socket by `what`. Blocks as take_in() does, and where nobody but us reads from the socket only if
/// something is attached.
Result<std::optional<SmallMessage>> receive_small(int socket, const char* what, PeerSocket::Made made,
                                                  const Stranger& stranger);

}  // namespace lrpc::shim
