// Importing from another host: what Binding::import() does with `name@host`.
#pragma once

#include <string_view>

#include "lrpc/detail/client/import/binding.h"

namespace lrpc::client {

/// `name` has an '@'. Errors: those of Binding::import(); the network domain's own, and the remote nameserver's.
Result<Binding> import_remote(std::string_view name, const Pdl& pdl, const ImportOptions& options);

}  // namespace lrpc::client
