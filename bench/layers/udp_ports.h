// The kernel's UDP with many open ports: what Figure 6 of The x-Kernel shows for Unix.
#pragma once

#include <cstddef>
#include <vector>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {

/// Two connected sockets on the loopback interface, and any number of other connected sockets, each on a port of its
/// own. One thread uses both ends: a datagram is in the receiver's queue when send(2) returns, so that nothing ever
/// waits.
class UdpPorts {
 public:
  /// Errors: system_error.
  static Result<UdpPorts> open();

  /// Opens or closes other sockets, until a lookup has `ports` sockets to choose from (at least one), besides the
  /// asking one. Opening one takes some microseconds. Errors: system_error (out of descriptors: see most()); those
  /// opened so far stay open.
  Status have(std::size_t ports);
  /// Sends one byte there and one back. False: an error, or nothing arrived within a second.
  [[nodiscard]] bool once() noexcept;
  [[nodiscard]] std::size_t ports() const noexcept { return others_.size() + 1; }

  /// The most ports that the process's descriptor limit allows, with some descriptors left for everything else.
  [[nodiscard]] static std::size_t most() noexcept;

 private:
  UdpPorts() = default;
  UniqueFd client_;
  UniqueFd server_;
  std::vector<UniqueFd> others_;
};

}  // namespace lrpc::bench
