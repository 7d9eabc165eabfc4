// The network as the network path sees it, whatever protocols it is composed of: a call with at-most-once semantics.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::netpath {

/// An IPv4 address, in host order.
using HostAddress = std::uint32_t;
/// Numbers the commands of other hosts in the order of their arrival here. Commands that the network delivers from an
/// earlier life of a host have lower numbers than those from a later one.
using Arrival = std::uint64_t;

/// Bytes of the longest request to a host, and of the longest reply from it.
struct MessageSizes {
  std::size_t request = 0;
  std::size_t reply = 0;
};

/// A group of hosts that has a name.
struct Group {
  HostAddress address = 0;  ///< Identifies the group for call_group(); no host has it.
  std::vector<HostAddress> members;
  MessageSizes sizes;  ///< As of agree(): of a call to it.
};

/// Collects the answers of a group's members to one call.
class Collation {
 public:
  virtual ~Collation() = default;
  /// Whether a member's reply counts as an answer; else the member has failed. On any thread; must not block.
  [[nodiscard]] virtual bool counts(std::span<const std::byte> reply) noexcept = 0;
  /// Takes a member's reply, or the reason why there is none. On any thread; must not block. `reply` is empty unless
  /// `outcome` is ok.
  virtual void said(HostAddress member, Errc outcome, std::span<const std::byte> reply) noexcept = 0;
};

/// Whether nobody wants a call's reply any more. Called on any thread, inside locks of the transport; must not block.
/// Empty: somebody does.
using Gone = std::function<bool()>;

/// The client's side of the network. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Agrees with `host` on the length of messages: each host tells the other the largest packet that its link receives,
  /// and from then on neither sends a larger one. `sizes` gets the longest messages, prologues of this layer included.
  /// Called before each binding. Blocks at most `timeout`. Errors: those of call().
  virtual Errc agree(HostAddress host, MessageSizes& sizes, std::chrono::milliseconds timeout) noexcept = 0;
  /// A text for the importing program: why agree() with `host` ended with `outcome`, as far as this side knows. It
  /// continues "host 'NAME' ". If the reason is a key, it is also logged for the administrator.
  virtual std::string why(HostAddress host, Errc outcome) = 0;
  /// Sends `command` to the RemoteService of `host`, which serves it at most once, and puts the reply into `reply`.
  /// Blocks at most `timeout`, which is over zero; with kNoLimit until the host has answered or is known to be gone.
  ///   ok         `reply_size` says how long the reply is
  ///   timed_out  `timeout` is over; the command may have been, or be being, served
  ///   host_unreachable  there is no way to the host at present; the command was not served, and may be sent again
  ///   peer_gone  the host is silent, has crashed or has rebooted meanwhile, or `gone` has been true for some seconds;
  ///              the command may have been served. The path to it is given up: not for a command that is lost and may
  ///              be sent again
  ///   not_permitted, limit_reached, bad_message  the host has refused it; it was not served
  ///   system_error  this host could not send it, or the network of the other host could not take it, for lack of
  ///              memory or beyond a limit of its own; it was not served, and says nothing else about the other host
  ///   message_too_long  the command is longer than what goes to the host at present; it was not served, and says
  ///              nothing else about the other host
  ///   call_lost  a copy of the command, or the reply, has become longer than what goes between the hosts; the command
  ///              may have been served; it says nothing else about the other host
  virtual Errc call(HostAddress host, std::uint16_t command, std::span<const std::byte> request,
                    std::span<std::byte> reply, std::size_t& reply_size, std::chrono::milliseconds timeout,
                    const Gone& gone) noexcept = 0;

  /// The group of this name. nullopt: there is none; by default there are no groups.
  [[nodiscard]] virtual std::optional<Group> group(std::string_view /*name*/) { return std::nullopt; }
  /// As call(), to all members of a group. `reply` is that of the first member that has answered, once as many have as
  /// the network needs. `collation` hears of each member at most once, before this returns. Errors, besides:
  ///   peer_gone  too many members have failed
  virtual Errc call_group(HostAddress /*group*/, std::uint16_t /*command*/, std::span<const std::byte> /*request*/,
                          std::span<std::byte> /*reply*/, std::size_t& /*reply_size*/, Collation& /*collation*/,
                          std::chrono::milliseconds /*timeout*/, const Gone& /*gone*/) noexcept {
    return Errc::peer_gone;
  }
};

/// The server's side: answers the commands of other hosts. Thread-safe: many are served at the same time.
class RemoteService {
 public:
  virtual ~RemoteService() = default;
  /// Answers one command of `from`; its bytes are hostile. Returns 0 and the reply, or the Errc of a refusal. Blocks as
  /// long as the called procedure runs: call it on a thread that may block. Commands may be served in another order
  /// than that of `arrived`.
  virtual std::uint16_t serve(const Principal& from, Arrival arrived, std::uint16_t command,
                              std::span<const std::byte> request, std::span<std::byte> reply,
                              std::size_t& reply_size) noexcept = 0;
  /// Called when the network has seen a new boot id of `host`: drops everything that belongs to its former life.
  /// `last`: the last command, of any host, that had arrived by then. The call may come when commands of the new life
  /// have been served already. Does not block for long.
  virtual void peer_rebooted(HostAddress host, Arrival last) noexcept = 0;
};

}  // namespace lrpc::netpath
