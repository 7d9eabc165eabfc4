// Runs other programs: the helpers that are built beside the bench, and valgrind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/private_directory.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// The path of a program in the directory of this one. Errors: system_error if it cannot be executed.
Result<std::string> helper_path(std::string_view program);
/// Whether $PATH has an executable of that name.
[[nodiscard]] bool found_in_path(std::string_view program);

/// Runs a helper under callgrind, with these options for callgrind. Returns the path of callgrind's output file, in
/// `directory`. Errors: those of helper_path() and run_program().
Result<std::string> run_under_callgrind(std::string_view helper, const std::vector<std::string>& options,
                                        const std::vector<std::string>& arguments, const PrivateDirectory& directory);

}  // namespace lrpc::bench
