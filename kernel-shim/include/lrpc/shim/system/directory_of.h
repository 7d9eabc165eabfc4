// Where a file lies, by its path.
#pragma once

#include <string>

namespace lrpc::shim {

/// The path of the directory: "/run" of "/run/a", "/" of "/a", "." of "a".
inline std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace lrpc::shim
