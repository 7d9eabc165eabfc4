// The parts of Binding::import() and RawBinding::import().
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lrpc/detail/client/import/binding.h"

namespace lrpc::client {

/// Binding::import() of a name of this machine.
Result<Binding> import_here(std::string_view name, const Pdl& pdl, const ImportOptions& options);

/// True if this program was started as a sealed client domain.
[[nodiscard]] bool in_sealed_domain() noexcept;
/// Binding::import() in a sealed domain: the one binding that the program's launcher has made for it. Never blocks, and
/// opens nothing.
Result<Binding> import_sealed(std::string_view name, const Pdl& pdl, const ImportOptions& options);

/// Errors: invalid_argument (a duration that makes no sense), not_supported (an option that the trap gate, or a binding
/// without a watcher, cannot provide). `sealed`: the binding has the trap gate.
Status check_options(const ImportOptions& options, bool sealed);

/// What bind() asks for. `classes`: those that this client was compiled for; empty if it takes the server's, which
/// bind() then writes into `bound_classes`.
struct ImportWish {
  InterfaceId interface;
  std::span<const AStackClass> classes;
  std::optional<shim::Principal> principal;
  bool is_private = false;
  bool early = false;  ///< The answer of the private server may have come before the kernel was asked who sends it.
};
Result<Binding> bind(int socket, std::string_view name, const ImportWish& wish, const ImportOptions& options,
                     std::vector<AStackClass>* bound_classes = nullptr);

}  // namespace lrpc::client
