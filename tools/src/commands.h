// The subcommands of lrpc. Each prints its result or error and returns the exit status.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/result.h"
#include "lrpc/sealed.h"

namespace lrpc::tools {

/// Exit statuses of the command itself. `run` otherwise passes on the program's exit status.
inline constexpr int kFailed = 1;
inline constexpr int kNotStarted = 125;

int list_names(const std::string& nameserver);
int describe_name(const std::string& nameserver, const std::string& name);
/// The caller's bindings to groups of hosts; to root, everybody's.
int list_groups(const std::string& nameserver);
/// Sets options.timeout: `seconds` is a number that is not negative, or shim::kNoLimitWord.
int run_sealed(SealedOptions options, const std::string& seconds, const std::vector<std::string>& command);

/// Prints "lrpc: LINE" on the standard error. Ignores errors: the exit status does not depend on them.
void tell(std::string_view line) noexcept;
/// tell() of an error; returns `status`.
int complain(const Error& error, int status = kFailed);

}  // namespace lrpc::tools
