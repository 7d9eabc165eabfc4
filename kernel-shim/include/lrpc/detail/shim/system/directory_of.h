// The directory of a file.
#pragma once

#include <string>
#include <vector>

namespace lrpc::shim {

/// The path of the directory: "/run" of "/run/a", "/" of "/a", "." of "a".
inline std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// The directories in which these files must be found to be opened by these paths again: the directory of each path
/// and, if the path is a symbolic link, that of its present target. Empty paths are ignored.
[[nodiscard]] std::vector<std::string> directories_of(const std::vector<std::string>& paths);

}  // namespace lrpc::shim
