// Checks the values of a nameserver's options.
#pragma once

#include "lrpc/detail/shim/result.h"
#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// invalid_argument, with the option's name, for the first meaningless value. The rule: lrpc/detail/shim/no_limit.h.
[[nodiscard]] Status check_options(const NameserverOptions& options);

/// Cuts durations to a year: timers add them to the time now, and a longer one might overflow. kNoLimit stays if it has
/// a meaning of its own.
void cut_to_what_the_clock_can_tell(NameserverOptions& options) noexcept;

}  // namespace lrpc::nameserver
