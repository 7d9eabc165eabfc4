// The kernel's UDP among many open ports: what The x-Kernel's Figure 6 shows of Unix.
#pragma once

#include <cstddef>
#include <vector>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {

/// Two connected sockets on the loopback interface, and any number of others, each connected, each on a port of its
/// own. Both ends are used by one thread: a datagram is in the other's queue when send(2) returns, so nothing ever
/// waits.
class UdpPorts {
 public:
  /// Errors: system_error.
  static Result<UdpPorts> open();

  /// Opens others or closes them, until a lookup has `ports` sockets to choose from, besides the one that asks; at
  /// least one. Takes some microseconds each. Errors: system_error (out of descriptors: see most()); as many as could
  /// be are open.
  Status have(std::size_t ports);
  /// One byte there and back. False: an error, or nothing arrived within a second.
  [[nodiscard]] bool once() noexcept;
  [[nodiscard]] std::size_t ports() const noexcept { return others_.size() + 1; }

  /// The most ports that the process's limit of descriptors has room for, with some left for everything else.
  [[nodiscard]] static std::size_t most() noexcept;

 private:
  UdpPorts() = default;
  UniqueFd client_;
  UniqueFd server_;
  std::vector<UniqueFd> others_;
};

}  // namespace lrpc::bench
