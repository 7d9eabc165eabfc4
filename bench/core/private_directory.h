// A place for sockets and keys that nobody else needs.
#pragma once

#include <string>
#include <string_view>

namespace lrpc::bench {

/// A directory of its own, gone with its contents with this object.
class PrivateDirectory {
 public:
  PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  ~PrivateDirectory();
  /// False: it could not be made; there is no place for files.
  [[nodiscard]] bool made() const noexcept { return !path_.empty(); }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;  ///< Empty: it could not be made.
};

}  // namespace lrpc::bench
