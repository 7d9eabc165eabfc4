// What `lrpc-netd --graph FILE --check` does.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// What is shown of a graph that is right.
enum class GraphPicture { none, text, svg };

/// The text of a description's file. Errors: system_error, invalid_argument (larger than a description may be, or no
/// file).
Result<std::string> read_graph_file(const std::string& path);

/// The errors of parse(), each line with the file's name in front: "FILE:LINE: reason, what to do".
[[nodiscard]] std::string with_path(std::string_view path, std::string_view errors);

/// What a program asks of a graph, beyond the language. An error's text is as parse() has them.
using GraphRules = std::function<Status(const GraphDescription& graph)>;

/// Checks the description in the file against `kinds`, and then against `rules` (null: none), and writes to `out` what
/// is wrong with it, or the picture (without one: "FILE: N protocols, all right"). Composes nothing. Returns an exit
/// status: 0, or 1 if something is wrong.
[[nodiscard]] int check_graph_file(const std::string& path, const ProtocolKinds& kinds, std::ostream& out,
                                   GraphPicture picture, const GraphRules& rules = nullptr);

}  // namespace lrpc::netrpc
