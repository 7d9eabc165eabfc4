// A process that reads the policy on behalf of lrpcd, which can open no files in its sandbox. It has no contact with
// peers, and lrpcd never waits for it: looking users up can take long.
#pragma once

#include <optional>
#include <string>

#include "lrpc/detail/nameserver/policy_file.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::nameserver {

/// For one thread. The process ends with this object, or with the process that owns it. Nobody reaps it: in its sandbox
/// lrpcd may neither signal nor wait for a process.
class PolicyReader {
 public:
  /// Forks. Call it before there are threads, or descriptors that no other process may have.
  static Result<PolicyReader> start(const std::string& path);
  PolicyReader(PolicyReader&&) noexcept = default;
  PolicyReader& operator=(PolicyReader&&) = delete;

  /// Asks for the file as it is now. Several requests before the answer may get only one answer. Errors: peer_gone, if
  /// no answer will ever come; system_error, if there is no memory for the request.
  Status ask();
  /// Readable when there is something to take().
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  /// The next answer: what load_policy_source() returned in that process; none if it has not arrived completely. Call
  /// it until there is none: fd() does not become readable again for buffered answers. peer_gone: no answer will ever
  /// come. Does not block.
  Result<std::optional<PolicySource>> take();

 private:
  explicit PolicyReader(UniqueFd socket) noexcept : socket_(std::move(socket)) {}
  UniqueFd socket_;
  std::string received_;
};

}  // namespace lrpc::nameserver
