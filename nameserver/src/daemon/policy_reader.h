// A process that reads the policy on behalf of lrpcd, which can open no files once it has shut itself in. It knows no
// peers, and lrpcd never waits for it: looking users up can take long.
#pragma once

#include <optional>
#include <string>

#include "lrpc/detail/nameserver/policy_file.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::nameserver {

/// One thread's. The process ends with the object, or with the process that has it; nobody waits for it: lrpcd may
/// neither signal nor reap when it has shut itself in.
class PolicyReader {
 public:
  /// Forks: before there are threads, and descriptors that nobody else is to have.
  static Result<PolicyReader> start(const std::string& path);
  PolicyReader(PolicyReader&&) noexcept = default;
  PolicyReader& operator=(PolicyReader&&) = delete;

  /// Asks for the file as it is now. Asked again before the answer has come, it may answer once. Error:
  /// peer_gone, if no answer will ever come.
  Status ask();
  /// Readable when there is something to take().
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  /// The next answer: what load_policy_source() returned there; none if it has not come wholly yet. To be called until
  /// there is none: fd() does not become readable again for what is here already. peer_gone: no answer will ever come.
  /// Does not block.
  Result<std::optional<PolicySource>> take();

 private:
  explicit PolicyReader(UniqueFd socket) noexcept : socket_(std::move(socket)) {}
  UniqueFd socket_;
  std::string received_;
};

}  // namespace lrpc::nameserver
