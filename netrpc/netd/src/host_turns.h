// Commands of other hosts that wait for a thread, and whose turn it is: policy alone, without threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>

#include "lrpc/netrpc/path/transport.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/src/host_shares.h"

namespace lrpc::netd {

/// A command to be served. With a `session` or a `part`, it may be assigned and destroyed only inside the host's
/// monitor, and moved anywhere. Without them, as after a move, it may be assigned and destroyed anywhere, too.
struct Command {
  netrpc::SessionRef session;
  netrpc::Message request;
  Principal from;
  netpath::Arrival arrived = 0;
  std::uint16_t number = 0;
  std::chrono::steady_clock::time_point since{};  ///< When it arrived here.
  netrpc::HostShares::Part part{};                ///< Of buffers, where hosts share them.
};

/// Each host has a queue of its own. The hosts with the fewest threads are served first, in turn. Work: proportional to
/// the number of hosts that wait or are being served. Allocates nothing in the steady state. Not thread-safe.
class HostTurns {
 public:
  /// `threads`: how many there are, of which one host has its share (most_of_one()); kNoLimit: one host may have all.
  /// `waiting`: the most commands that wait, of which one host has its share, too.
  HostTurns(std::size_t threads, std::size_t waiting) noexcept : threads_(threads), most_waiting_(waiting) {}

  /// False: too many wait; the command is unchanged. Throws std::bad_alloc; then it is unchanged, too.
  [[nodiscard]] bool add(Command& command);
  /// Whether a command waits that may be served now.
  [[nodiscard]] bool any() noexcept { return next_host() != hosts_.end(); }
  /// Takes the next command. Its host has one more thread from here to done(). Precondition: any().
  [[nodiscard]] Command next() noexcept;
  void done(netpath::HostAddress host) noexcept;
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
  /// Removes all commands that wait, and returns them.
  [[nodiscard]] std::list<Command> take_all() noexcept;

 private:
  struct Host {
    netpath::HostAddress address = 0;
    std::size_t served = 0;  ///< How many threads serve its commands.
    std::list<Command> waiting;
  };
  using Hosts = std::list<Host>;
  [[nodiscard]] Hosts::iterator find(netpath::HostAddress host) noexcept;
  [[nodiscard]] Hosts::iterator next_host() noexcept;
  void drop_unused(Hosts::iterator host) noexcept;

  const std::size_t threads_;
  const std::size_t most_waiting_;
  Hosts hosts_;  ///< Those that have commands here; a host moves to the end when it is served.
  std::size_t waiting_ = 0;
  std::size_t served_ = 0;
  Hosts spare_hosts_;  ///< For reuse, as `spare_`.
  std::list<Command> spare_;
};

}  // namespace lrpc::netd
