// The program of a sealed domain, before it is started.
#pragma once

#include <string>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::sealed {

/// Finds and opens the program, and checks that it can run sealed: an ELF executable that needs no interpreter. Errors:
/// invalid_argument.
Result<UniqueFd> open_program(const std::string& name);

}  // namespace lrpc::sealed
