// A directory that paths cannot leave: every path is resolved by the kernel beneath it (openat2(2), RESOLVE_BENEATH),
// so neither "..", an absolute path nor a symbolic link leads out of it, even while somebody renames things.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lrpc/server.h"

namespace files {

/// Thread-safe; holds one descriptor.
class ConfinedDirectory {
 public:
  struct Opened {
    lrpc::UniqueFd fd;
    int error_number = 0;  ///< errno if there is no fd.
  };

  /// Opens the directory to export. Fails with system_error.
  static lrpc::Result<ConfinedDirectory> open(const std::string& path);

  /// openat2 beneath the directory; `flags` and `permissions` as for open(2). An empty path is the directory itself.
  [[nodiscard]] Opened open_beneath(std::string_view path, int flags, mode_t permissions = 0) const;
  /// Both return 0 or an errno.
  [[nodiscard]] int make_directory(std::string_view path) const;
  [[nodiscard]] int stat(std::string_view path, struct stat& status) const;

 private:
  explicit ConfinedDirectory(lrpc::UniqueFd root) : root_(std::move(root)) {}
  lrpc::UniqueFd root_;
};

}  // namespace files
