// Where a file lies, by its path.
#pragma once

#include <string>
#include <vector>

namespace lrpc::shim {

/// The path of the directory: "/run" of "/run/a", "/" of "/a", "." of "a".
inline std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// Where files have to be found that are to be opened by these paths again and again: there, and, if one is a symbolic
/// link, where the file lies to which it leads now. An empty path is no file's.
[[nodiscard]] std::vector<std::string> directories_of(const std::vector<std::string>& paths);

}  // namespace lrpc::shim
