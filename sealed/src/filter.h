// The seccomp filter of a sealed domain.
#pragma once

#include <linux/filter.h>

#include <optional>
#include <string>
#include <vector>

#include "lrpc/detail/sandbox/filter.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::sealed {

/// What becomes of a system call that is not on the list. With `trace` the supervisor is asked, and refuses.
using Refuse = sandbox::Otherwise;

/// The filter for this processor. `allow`: further system calls by name. `send_on`: a descriptor that sendmsg may be
/// used on, to be closed before anything untrusted runs. Errors: invalid_argument (an unknown name), system_error.
Result<std::vector<sock_filter>> make_filter(Refuse refuse, const std::vector<std::string>& allow,
                                             std::optional<int> send_on = std::nullopt);

/// Puts the calling thread under the filter, for good, and lets its process write no core files. The listener, or
/// -errno. Async-signal-safe.
int install_filter(const sock_filter* filter, std::size_t size) noexcept;
/// Why install_filter() failed, for a person.
Error why_not_installed(int err);

/// "openat".
std::string name_of_system_call(long number);

}  // namespace lrpc::sealed
