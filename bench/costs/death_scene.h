// One death: two domains that are bound to each other, the end of one, and when the other one heard of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/placement.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// Who is to hear, and what it is doing. The first is the floor, and dies the server; in the last two the client dies.
enum class Hears {
  poll,           ///< A process that polls a pidfd, and nothing else.
  call,           ///< A caller whose call the server holds.
  started_call,   ///< The same for a call that was started, in finish().
  next_call,      ///< A caller that saw the death itself and calls at once.
  last_binding,   ///< The last of kManyBindings of one process to hear of it, by `when_revoked`.
  unbound,        ///< The server of an idle client, by `on_unbound`.
  unbound_calls,  ///< The same for a client whose call it holds.
};
inline constexpr int kManyBindings = 256;
/// How the one dies.
enum class Way {
  kill,       ///< SIGKILL.
  exit,       ///< exit_group(2), without taking anything down.
  crash,      ///< SIGSEGV, without a core dump.
  kill_held,  ///< SIGKILL, and a child of a bare clone(2) keeps its sockets open: only its pidfd tells.
};
[[nodiscard]] std::string_view name(Hears hears) noexcept;
[[nodiscard]] std::string_view name(Way way) noexcept;

struct Act {
  shim::Gate gate = shim::Gate::adaptive;
  Hears hears = Hears::call;
  Way way = Way::kill;
};

/// When somebody heard, in nanoseconds; negative: before it.
struct Heard {
  double after_report;  ///< After poll(2) said that the pidfd of the dead one is readable.
  double after_signal;  ///< After the signal that ended it was sent.
};

/// Starts the two, ends the one, and waits for the other. Both are gone when it returns. Precondition: as of
/// Child::spawn(). Blocks for some milliseconds; an error if nobody hears within ten seconds, or something else.
Result<Heard> stage_death(const std::string& nameserver, const Seats& seats, const Act& act);

}  // namespace lrpc::bench
