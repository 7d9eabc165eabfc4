// A few bytes, perhaps with a descriptor, received without waiting: the messages of bells and lines.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// A received message: a private copy. The peer may have sent anything.
struct SmallMessage {
  static constexpr std::size_t kLongest = 8;  ///< More than any valid message has, so that a longer one is detected.

  std::array<std::byte, kLongest> bytes{};
  std::size_t size = 0;
  UniqueFd fd;               ///< As from take_in(): a socket must be put into a PeerSocket.
  bool fds_refused = false;  ///< Too many descriptors came, or one of a kind that is not accepted.
  bool fds_lost = false;     ///< Descriptors came for which this process had no free numbers.

  [[nodiscard]] std::span<const std::byte> contents() const noexcept { return std::span(bytes).first(size); }
};

/// Receives one message of a stranger, at most kLongest bytes of it. nullopt: there is none. Error: peer_gone, also if
/// what the other side has sent cannot be received; the text names the socket by `what`. Blocks as take_in() does; but
/// if nobody else reads from the socket (`made` is not by_peer), only if something is attached.
Result<std::optional<SmallMessage>> receive_small(int socket, const char* what, PeerSocket::Made made,
                                                  const Stranger& stranger);

}  // namespace lrpc::shim
