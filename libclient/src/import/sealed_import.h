// Importing in a sealed domain: the one binding that the program's launcher has made for it.
#pragma once

#include <string_view>

#include "lrpc/detail/client/import/binding.h"

namespace lrpc::client {

/// True if this program was started as a sealed client domain.
[[nodiscard]] bool in_sealed_domain() noexcept;
/// Binding::import() in a sealed domain. Never blocks, and opens nothing.
Result<Binding> import_sealed(std::string_view name, const Pdl& pdl, const ImportOptions& options);

}  // namespace lrpc::client
