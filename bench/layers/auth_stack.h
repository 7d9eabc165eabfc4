// The stack of lrpc-netd's built-in graph, with AUTH, and the file of keys that it needs.
#pragma once

#include <string>

#include "core/private_directory.h"
#include "lrpc/detail/shim/result.h"
#include "stacks.h"

namespace lrpc::bench {

/// "SELECT-CHANNEL-AUTH-VIPsize". A graph reads the keys when it is composed, and does not need this object later.
class AuthStack {
 public:
  static constexpr std::string_view kName = "SELECT-CHANNEL-AUTH-VIPsize";
  /// The same stack without AUTH, to compare with.
  static constexpr std::string_view kWithout = "SELECT-CHANNEL-VIPsize";

  /// Writes a new key that is valid for every host. `cipher`: AUTH's option. Call written() to see whether that worked.
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
