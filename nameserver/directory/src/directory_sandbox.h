// What lrpc-directory can still access in its sandbox (docs/SANDBOX.md).
#pragma once

#include "config.h"
#include "lrpc/sandbox.h"

namespace lrpc::directory {

[[nodiscard]] sandbox::Options sandbox_of_directory(const Config& config);

}  // namespace lrpc::directory
