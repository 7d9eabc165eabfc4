// The stack of lrpc-netd's built-in graph, with AUTH in it, and a file of keys as long as it is needed.
#pragma once

#include <string>

#include "core/private_directory.h"
#include "lrpc/detail/shim/result.h"
#include "stacks.h"

namespace lrpc::bench {

/// "SELECT-CHANNEL-AUTH-VIPsize". What is composed of it reads the keys then, and needs this object no more.
class AuthStack {
 public:
  static constexpr std::string_view kName = "SELECT-CHANNEL-AUTH-VIPsize";
  /// The same without AUTH: what it is to be compared with.
  static constexpr std::string_view kWithout = "SELECT-CHANNEL-VIPsize";

  /// Writes a new key that counts for every host. `cipher`: AUTH's option. Check with written().
  explicit AuthStack(std::string_view cipher = "best");
  /// Errors: system_error (the file of keys could not be written).
  [[nodiscard]] Status written() const { return written_; }
  [[nodiscard]] Stack stack() const noexcept { return {kName, graph_, netrpc::Service::transaction}; }

 private:
  Status write_key(const std::string& path) const;

  PrivateDirectory directory_;
  std::string graph_;
  Status written_;
};

}  // namespace lrpc::bench
