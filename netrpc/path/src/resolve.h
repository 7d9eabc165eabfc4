// From the name of a host to its address.
#pragma once

#include <string>

#include "lrpc/netrpc/path/transport.h"

namespace lrpc::netpath {

/// Of an IPv4 address in numbers, or of a name, which getaddrinfo(3) looks up. May block as long as that does. Errors:
/// invalid_argument (an IPv6 or a multicast address: groups have such in the graph), remote_unavailable (no address is known).
[[nodiscard]] Result<HostAddress> resolve(const std::string& host);

}  // namespace lrpc::netpath
