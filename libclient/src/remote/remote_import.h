// Importing from another host: what Binding::import() does with `name@host` and with `name@`.
#pragma once

#include <string_view>

#include "lrpc/detail/client/import/binding.h"

namespace lrpc::client {

/// `name` has an '@'. Errors: those of Binding::import(); the network domain's own, and the remote nameserver's.
Result<Binding> import_remote(std::string_view name, const Pdl& pdl, const ImportOptions& options);

/// The same for `name@`; here `name` has no '@'. Asks this machine's directory, and binds to the first host of its
/// answer that accepts: by import_remote(), or by a local import if the host is this machine. Blocks at most for
/// options.timeout, plus some 5 s for each host that does not answer, plus 5 s if the directory does not answer (15 s
/// with kDoNotWait). Errors: those of import_remote(); remote_unavailable: no directory here, or etcd does not answer.
Result<Binding> import_by_directory(std::string_view name, const Pdl& pdl, const ImportOptions& options);

}  // namespace lrpc::client
