// Running another program and reading what it says.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// Runs a program (found through $PATH) and returns what it wrote to its standard output. An exit status other than 0
/// is an error that quotes the end of its standard error; so is taking longer than `limit`.
Result<std::string> run_program(const std::vector<std::string>& command, std::chrono::milliseconds limit);

/// In a child process: becomes the program (found through $PATH), whose standard output and error these are. Returns
/// only if it cannot: 127.
int become(const std::vector<std::string>& command, int out, int err);

}  // namespace lrpc::bench
