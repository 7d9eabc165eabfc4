// What a call counts in while it is under way, so that one user or host does not take all from the others.
#pragma once

#include <cstddef>
#include <optional>

#include "path_service.h"

namespace lrpc::netpath {

/// Of what there is for all users, at most for one.
[[nodiscard]] constexpr std::size_t half(std::size_t all) noexcept { return all / 2 + all % 2; }

/// A call's part of a load, to the end of the scope. What is refused counts nowhere, so that whoever is refused all the
/// time takes nothing from others.
class Share {
 public:
  /// `wanted` false: it is refused, whatever the load.
  Share(PathService::Load& load, std::size_t most, std::size_t part = 1, bool wanted = true) noexcept
      : load_(load), part_(part), granted_(wanted && take(most)) {}
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() {
    if (granted_) load_.fetch_sub(part_);
  }
  [[nodiscard]] bool granted() const noexcept { return granted_; }

 private:
  [[nodiscard]] bool take(std::size_t most) noexcept {
    std::size_t now = load_.load();
    while (now + part_ <= most)
      if (load_.compare_exchange_weak(now, now + part_)) return true;
    return false;
  }

  PathService::Load& load_;
  const std::size_t part_;
  const bool granted_;
};

/// Its part of the loads of one host: first of the user's, then of everybody's.
class HostTurn {
 public:
  HostTurn(const PathService::Loads& loads, std::size_t most_to_host, bool wanted = true) noexcept
      : of_user_to_host_(*loads.of_user_to_host, half(most_to_host), 1, wanted),
        to_host_(*loads.to_host, most_to_host, 1, of_user_to_host_.granted()) {}
  [[nodiscard]] bool granted() const noexcept { return to_host_.granted(); }

 private:
  const Share of_user_to_host_;
  const Share to_host_;
};

/// Its part of all loads that its path counts in: first of the user's, then of everybody's.
class Turn {
 public:
  Turn(const PathService::Loads& loads, std::size_t most_to_host) noexcept
      : of_user_(*loads.of_user, half(PathService::kMaxEStacks), loads.hosts),
        to_host_(loads, most_to_host, of_user_.granted()) {
    if (loads.to_members != nullptr)
      to_members_.emplace(*loads.to_members, PathService::kMaxEStacks, loads.hosts, to_host_.granted());
  }
  [[nodiscard]] bool granted() const noexcept { return to_host_.granted() && (!to_members_ || to_members_->granted()); }

 private:
  const Share of_user_;
  const HostTurn to_host_;
  std::optional<Share> to_members_;
};

}  // namespace lrpc::netpath
