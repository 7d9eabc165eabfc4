// One death: two domains that are bound to each other, the death of one, and the moment when the other one learnt of
// it.
#pragma once

#include <string>
#include <string_view>

#include "core/placement.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// Who is to learn of the death, and what it does meanwhile. `poll` is the floor. In the last two the client dies, in
/// the others the server.
enum class Hears {
  poll,           ///< A process that polls a pidfd, and nothing else.
  call,           ///< A caller whose call the server holds.
  started_call,   ///< The same for a started call, in finish().
  next_call,      ///< A caller that sees the death itself (by a pidfd) and then makes a call at once.
  last_binding,   ///< The last of one process's kManyBindings bindings whose `when_revoked` is called.
  unbound,        ///< The server of an idle client, by `on_unbound`.
  unbound_calls,  ///< The same, while the server holds a call of the client.
};
inline constexpr int kManyBindings = 256;
/// How the domain dies.
enum class Way {
  kill,       ///< SIGKILL.
  exit,       ///< exit_group(2), without any clean-up.
  crash,      ///< SIGSEGV, without a core dump.
  kill_held,  ///< SIGKILL, while a child made by a bare clone(2) keeps its sockets open: only the pidfd shows the
              ///< death.
};
[[nodiscard]] std::string_view name(Hears hears) noexcept;
[[nodiscard]] std::string_view name(Way way) noexcept;

struct Act {
  shim::Gate gate = shim::Gate::adaptive;
  Hears hears = Hears::call;
  Way way = Way::kill;
};

/// When the other domain learnt of the death, in nanoseconds; negative: earlier.
struct Heard {
  double after_report;  ///< After poll(2) reported, to the bench (next_call: to the caller), that the dead domain's
                        ///< pidfd is readable.
  double after_signal;  ///< After the signal that ended it was sent.
};

/// Starts the two domains, ends one, and waits until the other one knows. Both are gone when it returns. Precondition:
/// as of Child::spawn(). Blocks for some milliseconds. Errors: timed_out if a domain has not learnt of the death within
/// ten seconds; call_aborted; those of the domains.
Result<Heard> stage_death(const std::string& nameserver, const Seats& seats, const Act& act);

}  // namespace lrpc::bench
