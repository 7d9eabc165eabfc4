// From the name of a host to its address.
#pragma once

#include <string>

#include "lrpc/netrpc/path/transport.h"

namespace lrpc::netpath {

/// The address of `host`: an IPv4 address in numbers, or a name, which getaddrinfo(3) looks up. May block as long as
/// that does. Errors: invalid_argument (an IPv6 address, or a multicast address, which is a group's),
/// remote_unavailable (no address is known), limit_reached (no descriptor or no memory to look).
[[nodiscard]] Result<HostAddress> resolve(const std::string& host);

}  // namespace lrpc::netpath
