// What lrpcd still needs when it serves.
#pragma once

#include <string>

#include "lrpc/sandbox.h"

namespace lrpc::nameserver {

/// The sandbox of a daemon that listens on `socket_path` already. It reads no files any more: its policy, and who the
/// users and groups in it are, another process reads for it (policy_reader.h).
sandbox::Options sandbox_of_daemon(const std::string& socket_path);

}  // namespace lrpc::nameserver
