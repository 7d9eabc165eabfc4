// Which options of a nameserver have a meaning.
#pragma once

#include "lrpc/detail/shim/result.h"
#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// invalid_argument, with the option's name, for the first that has none. The rule: lrpc/detail/shim/no_limit.h.
[[nodiscard]] Status check_options(const NameserverOptions& options);

/// Timers add a duration to the time now: those that the sum could not hold are a year. kNoLimit stays where it has a
/// meaning of its own.
void cut_to_what_the_clock_can_tell(NameserverOptions& options) noexcept;

}  // namespace lrpc::nameserver
