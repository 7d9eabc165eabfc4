// Commands of other hosts that wait for a thread, and whose turn it is: policy alone, without threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>

#include "lrpc/netrpc/path/transport.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netd {

/// A command to be served. A `session` that it has may be copied, assigned and destroyed only inside the host's
/// monitor; moved anywhere. One without it, as after a move, may be assigned and destroyed anywhere, too.
struct Command {
  netrpc::SessionRef session;
  netrpc::Message request;
  Principal from;
  netpath::Arrival arrived = 0;
  std::uint16_t number = 0;
  std::chrono::steady_clock::time_point since{};  ///< When it arrived here.
};

/// Each host has a queue of its own. The host with the fewest threads is served first, in turn with those that have as
/// few. Work by the number of hosts that wait or are being served. Allocates nothing in the steady state. Not
/// thread-safe.
class HostTurns {
 public:
  /// `threads`: one host has its part of so many at a time (most_of_one()); kNoLimit: all that there are. `waiting`:
  /// the most commands that wait, of which one host has its part, too.
  HostTurns(std::size_t threads, std::size_t waiting) noexcept : threads_(threads), most_waiting_(waiting) {}

  /// False: too many wait; the command is unchanged. Throws std::bad_alloc, likewise.
  [[nodiscard]] bool add(Command& command);
  /// Whether a command waits that may be served now.
  [[nodiscard]] bool any() noexcept { return next_host() != hosts_.end(); }
  /// The next one, whose host has a thread more from here to done(). If any().
  [[nodiscard]] Command next() noexcept;
  void done(netpath::HostAddress host) noexcept;
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
  /// All that wait; they do so no more.
  [[nodiscard]] std::list<Command> take_all() noexcept;

 private:
  struct Host {
    netpath::HostAddress address = 0;
    std::size_t served = 0;  ///< Threads.
    std::list<Command> waiting;
  };
  using Hosts = std::list<Host>;
  [[nodiscard]] Hosts::iterator find(netpath::HostAddress host) noexcept;
  [[nodiscard]] Hosts::iterator next_host() noexcept;
  void drop_unused(Hosts::iterator host) noexcept;

  const std::size_t threads_;
  const std::size_t most_waiting_;
  Hosts hosts_;  ///< That have commands here; those that were served last are the last.
  std::size_t waiting_ = 0;
  std::size_t served_ = 0;
  Hosts spare_hosts_;  ///< To be used again, as the next.
  std::list<Command> spare_;
};

}  // namespace lrpc::netd
