// Two users of a server.
#pragma once

#include <sys/types.h>

namespace lrpc::server {

constexpr uid_t kAlice = 1;
constexpr uid_t kBob = 2;

}  // namespace lrpc::server
