// The seccomp filter of a sealed domain.
#pragma once

#include <linux/filter.h>

#include <optional>
#include <string>
#include <vector>

#include "lrpc/detail/sandbox/filter.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::sealed {

/// What happens to a system call that is not on the list. With `trace` the supervisor is notified, and refuses it.
using Refuse = sandbox::Otherwise;

/// The filter for this processor. `allow`: further system calls by name. `send_on`: a descriptor on which sendmsg is
/// allowed; close it before anything untrusted runs. Errors: invalid_argument (an unknown name), system_error.
Result<std::vector<sock_filter>> make_filter(Refuse refuse, const std::vector<std::string>& allow,
                                             std::optional<int> send_on = std::nullopt);

/// Installs the filter on the calling thread permanently, and forbids core files of its process. Returns the listener,
/// or -errno. Async-signal-safe.
int install_filter(const sock_filter* filter, std::size_t size) noexcept;
/// Why install_filter() failed, as a readable error.
Error why_not_installed(int err);

/// The name of a system call, such as "openat".
std::string name_of_system_call(long number);

}  // namespace lrpc::sealed
