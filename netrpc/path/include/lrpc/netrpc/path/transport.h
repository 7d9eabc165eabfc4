// What the network path asks of a network, whatever is composed under it: a call with at-most-once semantics.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lrpc/shim/binder_protocol.h"
#include "lrpc/shim/result.h"

namespace lrpc::netpath {

/// An IPv4 address, in host order.
using HostAddress = std::uint32_t;
using shim::Principal;

/// The client's side of the network. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Bytes of the longest request, and of the longest reply, prologues of this layer included.
  [[nodiscard]] virtual std::size_t max_message() const noexcept = 0;
  /// Has `command` served by the RemoteService of `host`, at most once, and puts its reply into `reply`. Blocks, at most
  /// `timeout`, which is over zero; with kNoLimit until the host has answered or is known to be gone.
  ///   ok         `reply_size` says how long the reply is
  ///   timed_out  `timeout` is over; the command may have been, or be being, served
  ///   peer_gone  the host cannot be reached, has crashed or has rebooted meanwhile; the command may have been served. The
  ///              path to it is given up: not for a command that is lost and may be sent again
  ///   not_permitted, limit_reached, bad_message  the host has refused it; it was not served
  virtual Errc call(HostAddress host, std::uint16_t command, std::span<const std::byte> request,
                    std::span<std::byte> reply, std::size_t& reply_size,
                    std::chrono::milliseconds timeout) noexcept = 0;
};

/// The server's side: who answers the commands of other hosts. Thread-safe: many are served at the same time.
class RemoteService {
 public:
  virtual ~RemoteService() = default;
  /// Answers one command of `from`, whose bytes are hostile. Returns 0 and the reply, or the Errc with which it is
  /// refused. Blocks for as long as what is called runs; the caller's thread must be one that may.
  virtual std::uint16_t serve(const Principal& from, std::uint16_t command, std::span<const std::byte> request,
                              std::span<std::byte> reply, std::size_t& reply_size) noexcept = 0;
  /// The network has seen that a host has another boot id than before. Does not block for long.
  virtual void peer_rebooted(HostAddress host) noexcept = 0;
};

}  // namespace lrpc::netpath
