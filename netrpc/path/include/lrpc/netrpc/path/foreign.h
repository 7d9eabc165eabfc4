// Servers on other hosts that speak another protocol than lrpc-netd, such as Sun RPC: the interface between the remote
// broker and the implementation of that protocol.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lrpc/detail/server/call_context.h"
#include "lrpc/netrpc/path/transport.h"

namespace lrpc::netpath {

/// A client's binding to such a server. Thread-safe: many calls at the same time.
class ForeignBinding {
 public:
  virtual ~ForeignBinding() = default;
  struct Returned {
    std::uint16_t status = 0;  ///< The call status.
    std::size_t size = 0;      ///< Bytes in `results`: the packed image of results or of an error, or a text.
  };
  /// Calls procedure `number` with a packed image; both come from the client and are hostile. Blocks at most `limit`
  /// (0: the protocol's own limit), and not much longer than `caller` waits (null: no caller waits). `results` has room
  /// for kMaxImage bytes.
  [[nodiscard]] virtual Returned call(const CallContext* caller, std::uint16_t number, std::span<const std::byte> image,
                                      std::chrono::milliseconds limit, std::span<std::byte> results) noexcept = 0;
};

/// Thread-safe. Outlives the bindings.
class ForeignServers {
 public:
  virtual ~ForeignServers() = default;
  struct Wanted {
    std::string name;
    std::string host;         ///< The host's name, as the client wrote it.
    HostAddress address = 0;  ///< Its address.
    uid_t user = 0;           ///< Who imports.
    std::string declaration;  ///< Of the client's interface: hostile.
    /// The result of bind()'s work on the declaration, for the next bind() of the same import. Null at first.
    std::shared_ptr<const void> kept{};
  };
  /// Whether `name@host` is such a server. Does not block.
  [[nodiscard]] virtual bool knows(std::string_view name, std::string_view host) const noexcept = 0;
  /// Blocks for some seconds at most. The importing program gets the error, with its text; name_unknown means that the
  /// server may be there later. Throws nothing but std::bad_alloc. Precondition: knows(name, host).
  [[nodiscard]] virtual Result<std::unique_ptr<ForeignBinding>> bind(Wanted& wanted) = 0;
};

}  // namespace lrpc::netpath
