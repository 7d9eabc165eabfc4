// Runs another program and returns its output.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// Runs a program (found through $PATH) and returns what it wrote to its standard output. Fails if the exit status is
/// not 0 (the error quotes the end of its standard error), or if it takes longer than `limit`.
Result<std::string> run_program(const std::vector<std::string>& command, std::chrono::milliseconds limit);

/// Call it in a child process: executes the program (found through $PATH) with `out` and `err` as its standard output
/// and error. Returns only if that fails: 127.
int become(const std::vector<std::string>& command, int out, int err);

}  // namespace lrpc::bench
