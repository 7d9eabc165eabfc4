// What callgrind has written, by the source files whose lines the instructions are.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <string>
#include <string_view>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// Which component the lines of a file belong to; empty: that of the function into which the compiler has put them.
using ComponentOf = std::function<std::string_view(std::string_view file)>;

/// Instructions by component, of an output file written with --compress-strings=no and --compress-pos=no: lines that
/// were inlined count for the file in which they stand, as the debug information says. What belongs to no component
/// counts for "". Errors: bad_message (no such file's text).
Result<std::map<std::string, std::uint64_t, std::less<>>> read_profile(std::istream& text, const ComponentOf& of);

}  // namespace lrpc::bench
