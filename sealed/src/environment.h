// The environment of a sealed program: what it needs to compute, and nothing that its launcher knows besides.
#pragma once

#include <string>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::sealed {

/// `launchers`: the launcher's environment, null at the end, may be null. `wanted`: SealedOptions::environment. The
/// first place stays empty, for the inheritance. Errors: invalid_argument.
Result<std::vector<std::string>> environment_of_program(const char* const* launchers,
                                                        const std::vector<std::string>& wanted);

}  // namespace lrpc::sealed
