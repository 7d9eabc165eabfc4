// What the network path asks of a network, whatever is composed under it: a call with at-most-once semantics.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/shim/binder/binder_protocol.h"
#include "lrpc/shim/result.h"

namespace lrpc::netpath {

/// An IPv4 address, in host order.
using HostAddress = std::uint32_t;
/// The number of a command of another host, in the order in which they have arrived here. What the network delivers of
/// an earlier life of a host has lower numbers than what it delivers of a later one.
using Arrival = std::uint64_t;

/// Bytes of the longest request to a host, and of the longest reply from it.
struct MessageSizes {
  std::size_t request = 0;
  std::size_t reply = 0;
};

/// A group of hosts that has a name.
struct Group {
  HostAddress address = 0;  ///< By which call_group() knows it; no host's.
  std::vector<HostAddress> members;
  MessageSizes sizes;  ///< As of agree(): of a call to it.
};

/// What the members of a group have answered to one call.
class Collation {
 public:
  virtual ~Collation() = default;
  /// Whether a member's reply counts as an answer; else the member has failed. On any thread; must not block.
  [[nodiscard]] virtual bool counts(std::span<const std::byte> reply) noexcept = 0;
  /// What a member has said, or why nothing. On any thread; must not block. `reply` is empty unless `outcome` is ok.
  virtual void said(HostAddress member, Errc outcome, std::span<const std::byte> reply) noexcept = 0;
};

/// The client's side of the network. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Agrees with `host` on how long messages may be: each side says which packets its link receives, and sends no
  /// larger ones from then on. `sizes` has then what is carried, prologues of this layer included. Asked before each
  /// binding. Blocks, at most `timeout`. Errors: those of call().
  virtual Errc agree(HostAddress host, MessageSizes& sizes, std::chrono::milliseconds timeout) noexcept = 0;
  /// Why agree() with `host` has come to `outcome`, as far as this side knows, for whoever imports: what follows "host
  /// 'NAME' ". Also tells the administrator where it is a matter of keys.
  virtual std::string why(HostAddress host, Errc outcome) = 0;
  /// Has `command` served by the RemoteService of `host`, at most once, and puts its reply into `reply`. Blocks, at most
  /// `timeout`, which is over zero; with kNoLimit until the host has answered or is known to be gone.
  ///   ok         `reply_size` says how long the reply is
  ///   timed_out  `timeout` is over; the command may have been, or be being, served
  ///   host_unreachable  there is no way to the host at present; the command was not served, and may be sent again
  ///   peer_gone  the host is silent, has crashed or has rebooted meanwhile; the command may have been served. The
  ///              path to it is given up: not for a command that is lost and may be sent again
  ///   not_permitted, limit_reached, bad_message  the host has refused it; it was not served
  ///   system_error  this host could not send it, for want of memory or beyond a limit of its own; it was not served,
  ///              and says nothing about the other host
  ///   message_too_long  the command is longer than what goes to the host at present; the same
  virtual Errc call(HostAddress host, std::uint16_t command, std::span<const std::byte> request,
                    std::span<std::byte> reply, std::size_t& reply_size,
                    std::chrono::milliseconds timeout) noexcept = 0;

  /// The group of this name. nullopt: there is none; by default there are no groups.
  [[nodiscard]] virtual std::optional<Group> group(std::string_view /*name*/) { return std::nullopt; }
  /// As call(), to all members of a group. `reply` is that of the first member that has answered, once as many have as
  /// the network needs. `collation` hears of each member at most once, before this returns. Errors, besides:
  ///   peer_gone  too many members have failed
  virtual Errc call_group(HostAddress /*group*/, std::uint16_t /*command*/, std::span<const std::byte> /*request*/,
                          std::span<std::byte> /*reply*/, std::size_t& /*reply_size*/, Collation& /*collation*/,
                          std::chrono::milliseconds /*timeout*/) noexcept {
    return Errc::peer_gone;
  }
};

/// The server's side: who answers the commands of other hosts. Thread-safe: many are served at the same time.
class RemoteService {
 public:
  virtual ~RemoteService() = default;
  /// Answers one command of `from`, whose bytes are hostile. Returns 0 and the reply, or the Errc with which it is
  /// refused. Blocks for as long as what is called runs; the caller's thread must be one that may. Commands may be
  /// served in another order than that of `arrived`.
  virtual std::uint16_t serve(const Principal& from, Arrival arrived, std::uint16_t command,
                              std::span<const std::byte> request, std::span<std::byte> reply,
                              std::size_t& reply_size) noexcept = 0;
  /// The network has seen that a host has another boot id than before: what belongs to the life before goes. `last`:
  /// the last command that had arrived by then, of any host. May come late, when the new life has been served already.
  /// Does not block for long.
  virtual void peer_rebooted(HostAddress host, Arrival last) noexcept = 0;
};

}  // namespace lrpc::netpath
