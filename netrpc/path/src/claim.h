// A client's local binding to the network domain, while that makes a path for it.
#pragma once

#include <cstdint>
#include <memory>

#include "path_service.h"

namespace lrpc::netpath {

/// What a binding takes of its user's and everybody's shares. Given back at the end of the scope, unless a path has
/// been made, which gives it back itself.
class PathService::Claim {
 public:
  /// `paths`: how many it is to lead to. The service outlives it.
  Claim(PathService& service, const CallContext& context, std::size_t paths);
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim();
  /// Errors: limit_reached, invalid_argument (the binding has a path).
  [[nodiscard]] const Status& made() const noexcept { return made_; }
  /// `path`, which has it from now on.
  [[nodiscard]] std::shared_ptr<Path> keep(std::shared_ptr<Path> path) noexcept {
    kept_ = true;
    return path;
  }

  std::shared_ptr<Load> of_user;  ///< Null: it was not made.

 private:
  [[nodiscard]] Status make(const CallContext& context, std::size_t paths);

  PathService& service_;
  const std::uint64_t local_;
  Status made_;
  bool kept_ = false;
};

}  // namespace lrpc::netpath
