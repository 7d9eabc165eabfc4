// Other programs: the helpers that are built beside the bench, and valgrind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/private_directory.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// The path of a program that lies beside this one.
Result<std::string> helper_path(std::string_view program);
/// Whether $PATH has an executable of that name.
[[nodiscard]] bool found_in_path(std::string_view program);

/// Runs a helper under callgrind, with these options of callgrind's; the path of what that has written, in `directory`.
/// Errors: as above.
Result<std::string> run_under_callgrind(std::string_view helper, const std::vector<std::string>& options,
                                        const std::vector<std::string>& arguments, const PrivateDirectory& directory);

}  // namespace lrpc::bench
