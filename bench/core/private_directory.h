// A private place for sockets and keys.
#pragma once

#include <string>
#include <string_view>

namespace lrpc::bench {

/// A new temporary directory; the destructor removes it with its contents.
class PrivateDirectory {
 public:
  PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  ~PrivateDirectory();
  /// False: the directory could not be created, and file() must not be used.
  [[nodiscard]] bool made() const noexcept { return !path_.empty(); }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;  ///< Empty: the directory could not be created.
};

}  // namespace lrpc::bench
