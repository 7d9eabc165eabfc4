#include "private_directory.h"

#include <stdlib.h>

#include <filesystem>

namespace lrpc::bench {

PrivateDirectory::PrivateDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "lrpc-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace lrpc::bench
