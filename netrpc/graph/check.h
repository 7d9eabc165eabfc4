// What `lrpc-netd --graph FILE --check` does.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// The picture that is written for a correct graph.
enum class GraphPicture { none, text, svg };

/// The text of a description's file. Errors: system_error, invalid_argument (larger than GraphDescription::kMaxText, or
/// a directory).
Result<std::string> read_graph_file(const std::string& path);

/// The errors of parse(), each line preceded by the file's name: "FILE:LINE: reason, what to do".
[[nodiscard]] std::string with_path(std::string_view path, std::string_view errors);

/// A program's own requirements on a graph, beyond the language. The text of an error has the form of parse()'s.
using GraphRules = std::function<Status(const GraphDescription& graph)>;

/// Checks the description in the file against `kinds`, and then against `rules` (null: none). Writes the errors to
/// `out`, or else the picture (GraphPicture::none: "FILE: N protocols, all right"). Composes nothing. Returns an exit
/// status: 0, or 1 if there are errors.
[[nodiscard]] int check_graph_file(const std::string& path, const ProtocolKinds& kinds, std::ostream& out,
                                   GraphPicture picture, const GraphRules& rules = nullptr);

}  // namespace lrpc::netrpc
