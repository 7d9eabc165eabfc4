// A few bytes, perhaps with a descriptor, over a socket that nobody waits at: what bells and lines carry.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "lrpc/shim/fd.h"
#include "lrpc/shim/result.h"

namespace lrpc::shim {

/// What came: a private copy, of a peer that may say anything.
struct SmallMessage {
  static constexpr std::size_t kLongest = 8;
  /// One more descriptor than any message has, so that a second one is seen and closed.
  static constexpr std::size_t kMostFds = 2;

  std::array<std::byte, kLongest> bytes{};
  std::size_t size = 0;
  std::array<UniqueFd, kMostFds> fds;
  std::size_t fd_count = 0;
  bool fds_lost = false;  ///< Some came for which this process had no room.
};

/// Sends `bytes`, with a copy of `fd` unless that is negative. False: not sent, and errno says why. Never blocks.
[[nodiscard]] bool send_small(int socket, std::span<const std::byte> bytes, int fd) noexcept;
/// Takes one message, of which at most `longest` bytes are looked at. nullopt: nothing is there. Errors: peer_gone; the
/// text names the socket by `what`. Never blocks.
Result<std::optional<SmallMessage>> receive_small(int socket, std::size_t longest, const char* what);

}  // namespace lrpc::shim
