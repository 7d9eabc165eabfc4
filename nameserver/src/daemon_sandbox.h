// What lrpcd still needs when it serves.
#pragma once

#include <string>
#include <vector>

#include "lrpc/sandbox.h"

namespace lrpc::nameserver {

/// The sandbox of a daemon that listens on `socket_path` already. `read_again`: files that it will open anew when it is
/// told to (directories, if the files may be replaced); with them, the files that name users and groups.
sandbox::Options sandbox_of_daemon(const std::string& socket_path, const std::vector<std::string>& read_again = {});

}  // namespace lrpc::nameserver
