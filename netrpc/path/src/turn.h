// What a call counts in while it is under way, so that one user or host does not take all from the others.
#pragma once

#include <cstddef>

#include "path_service.h"

namespace lrpc::netpath {

/// Of what there is for all users, at most for one.
[[nodiscard]] constexpr std::size_t half(std::size_t all) noexcept { return all / 2 + all % 2; }

/// A call's part of a load, to the end of the scope.
class Share {
 public:
  Share(PathService::Load& load, std::size_t most) noexcept : load_(load), granted_(load.fetch_add(1) < most) {}
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() { load_.fetch_sub(1); }
  [[nodiscard]] bool granted() const noexcept { return granted_; }

 private:
  PathService::Load& load_;
  const bool granted_;
};

/// Its part of all loads that its path counts in.
class Turn {
 public:
  Turn(const PathService::Loads& loads, std::size_t most_to_host) noexcept
      : to_host_(*loads.to_host, most_to_host),
        of_user_to_host_(*loads.of_user_to_host, half(most_to_host)),
        of_user_(*loads.of_user, half(PathService::kMaxEStacks)) {}
  [[nodiscard]] bool granted() const noexcept {
    return to_host_.granted() && of_user_to_host_.granted() && of_user_.granted();
  }

 private:
  const Share to_host_;
  const Share of_user_to_host_;
  const Share of_user_;
};

}  // namespace lrpc::netpath
