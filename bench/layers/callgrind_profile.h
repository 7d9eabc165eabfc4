// Reads callgrind's output: instructions by the source files that contain their lines.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <string>
#include <string_view>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// The component to which the lines of a file belong. Empty: that of the function in which the compiler placed them.
using ComponentOf = std::function<std::string_view(std::string_view file)>;

/// Instructions by component, from an output file written with --compress-strings=no and --compress-pos=no. According
/// to the debug information, an inlined line counts for the file that contains it. Lines of no component count for "".
/// Errors: bad_message (`text` is not such a file).
Result<std::map<std::string, std::uint64_t, std::less<>>> read_profile(std::istream& text, const ComponentOf& of);

}  // namespace lrpc::bench
