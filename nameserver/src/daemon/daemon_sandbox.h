// What lrpcd still needs when it serves.
#pragma once

#include <string>

#include "lrpc/sandbox.h"

namespace lrpc::nameserver {

/// The sandbox of a daemon that listens on `socket_path` already. It reads no files any more: another process reads its
/// policy, and looks up the users and groups in it (policy_reader.h).
sandbox::Options sandbox_of_daemon(const std::string& socket_path);

}  // namespace lrpc::nameserver
