#include "lrpc/detail/shim/system/directory_of.h"

#include <filesystem>
#include <system_error>

namespace lrpc::shim {

std::vector<std::string> directories_of(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    found.push_back(directory_of(path));
    std::error_code none;
    if (!std::filesystem::is_symlink(path, none)) continue;
    const std::string file = std::filesystem::canonical(path, none).string();
    if (!none) found.push_back(directory_of(file));
  }
  return found;
}

}  // namespace lrpc::shim
