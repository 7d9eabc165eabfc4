// A socket from which a thread receives by system calls, bypassing its ring: the cheapest way to poll one busy socket
// (docs/PERFORMANCE.md, "Remote Null on one processor").
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"
#include "netrpc/devices/engine/core.h"

namespace lrpc::netrpc {

/// Belongs to one thread. Holds a duplicate of the descriptor: so look(), outside the monitor, receives from this
/// socket even while another thread removes it.
class DirectSocket {
 public:
  /// `room`: kLongestDatagram bytes, which must stay valid until stop().
  void use_room(std::span<std::byte> room) noexcept { room_ = room; }

  /// Inside the monitor: receives from this socket from now on. False: no descriptor is left.
  [[nodiscard]] bool start(SocketId id, int fd) noexcept;
  void stop() noexcept {
    fd_.reset();
    found_.reset();
  }
  [[nodiscard]] bool active() const noexcept { return static_cast<bool>(fd_); }
  [[nodiscard]] bool is(std::uint32_t index, std::uint32_t generation) const noexcept {
    return active() && id_.index == index && id_.generation == generation;
  }
  [[nodiscard]] SocketId id() const noexcept { return id_; }
  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }

  /// A datagram, or why there is none (an errno).
  struct Found {
    int error = 0;
    bool cut = false;  ///< The datagram was longer than the room.
    std::span<const std::byte> data{};
    std::span<const std::byte> from{};
    std::span<const std::byte> control{};
  };
  /// Tries once to receive, without blocking; outside the monitor, and not again before take().
  void look() noexcept;
  [[nodiscard]] bool found() const noexcept { return found_.has_value(); }
  /// What look() has found; valid until the next look(). Precondition: found().
  [[nodiscard]] Found take() noexcept { return *std::exchange(found_, std::nullopt); }

 private:
  SocketId id_;
  UniqueFd fd_;
  std::span<std::byte> room_;
  std::array<std::byte, kAddressRoom> from_{};
  alignas(cmsghdr) std::array<std::byte, kControlRoom> control_{};
  std::optional<Found> found_;
};

}  // namespace lrpc::netrpc
