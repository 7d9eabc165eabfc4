// Servers on other hosts that speak another protocol than lrpc-netds do among each other, such as Sun RPC: what the
// remote broker asks of whoever speaks it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lrpc/netrpc/path/transport.h"
#include "lrpc/server/call_context.h"

namespace lrpc::netpath {

/// A client's binding to such a server. Thread-safe: many calls at the same time.
class ForeignBinding {
 public:
  virtual ~ForeignBinding() = default;
  struct Returned {
    std::uint16_t status = 0;  ///< The call status.
    std::size_t size = 0;      ///< Of what it promises: the packed image of the results, or of an error, or a text.
  };
  /// Calls procedure `number` with a packed image; both are the client's, and hostile. Blocks, at most `limit` (0: as
  /// long as the protocol waits), and not much longer than `caller` waits (null: nobody does). `results` has room for
  /// kMaxImage bytes.
  [[nodiscard]] virtual Returned call(const CallContext* caller, std::uint16_t number, std::span<const std::byte> image,
                                      std::chrono::milliseconds limit, std::span<std::byte> results) noexcept = 0;
};

/// Thread-safe. Outlives the bindings.
class ForeignServers {
 public:
  virtual ~ForeignServers() = default;
  struct Wanted {
    std::string name;
    std::string host;         ///< As the client calls it.
    HostAddress address = 0;  ///< Its address.
    uid_t user = 0;           ///< Who imports.
    std::string declaration;  ///< Of the client's interface: hostile.
    /// What bind() has made of the declaration, for the next bind() of the same import. At first null.
    std::shared_ptr<const void> kept{};
  };
  /// Whether `name@host` is such a server. Does not block.
  [[nodiscard]] virtual bool knows(std::string_view name, std::string_view host) const noexcept = 0;
  /// Blocks for some seconds at most. Errors are for whoever imports, with a text; name_unknown: the server may be
  /// there later. Throws std::bad_alloc alone. Precondition: knows(name, host).
  [[nodiscard]] virtual Result<std::unique_ptr<ForeignBinding>> bind(Wanted& wanted) = 0;
};

}  // namespace lrpc::netpath
