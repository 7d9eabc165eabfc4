// The environment of a sealed program: what it needs to compute, and no other variable of its launcher.
#pragma once

#include <string>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::sealed {

/// `launchers`: the launcher's environment, null at the end, may be null. `wanted`: SealedOptions::environment. The
/// first element of the result is empty: it is the place for Inheritance::variable. Errors: invalid_argument.
Result<std::vector<std::string>> environment_of_program(const char* const* launchers,
                                                        const std::vector<std::string>& wanted);

}  // namespace lrpc::sealed
