// Importing by a name alone, wherever it is: what Binding::import() does with `name@`.
#pragma once

#include <string_view>

#include "lrpc/detail/client/import/binding.h"

namespace lrpc::client {

/// `name` has no '@'. Asks this machine's directory, and binds to the first host of its answer that binds, each as
/// import_remote() does, or without a host where that is this machine. Blocks at most options.timeout, beyond that some
/// 5 s for each host that does not answer, and 5 s where the directory does not answer (15 s without a timeout).
/// Errors: those of import_remote(); remote_unavailable: no directory here, or etcd does not answer.
Result<Binding> import_by_directory(std::string_view name, const Pdl& pdl, const ImportOptions& options);

}  // namespace lrpc::client
