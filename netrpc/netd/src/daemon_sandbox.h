// What lrpc-netd still needs when it is on the network.
#pragma once

#include <string>
#include <vector>

#include "lrpc/sandbox.h"

namespace lrpc::netd {

/// The sandbox of a daemon whose sockets and rings are open already. `key_files`: files that it may read again; their
/// directories can be read, since such files are replaced. `state_file`: an existing file that it may write; empty:
/// none. `tcp_ports`: ports to which it may connect by TCP.
sandbox::Options sandbox_of_daemon(const std::vector<std::string>& key_files, const std::string& state_file,
                                   const std::vector<std::uint16_t>& tcp_ports = {});

}  // namespace lrpc::netd
