// A file that decides something for its reader: a policy, a configuration, keys.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "lrpc/detail/shim/result.h"

namespace lrpc::shim {

struct OwnFile {
  std::size_t most = 0;      ///< The most bytes that it may have.
  bool secret = false;       ///< True: others may not read it, either.
  uid_t user = ::geteuid();  ///< Its owner, unless that is root.
};

/// Reads a regular file that nobody else can write: another writer would decide in its reader's place. `text` holds
/// what was read, even after an error. No other memory has held it, so the reader of a secret wipes only `text`.
/// Errors: not_permitted (others can write the file, or read it), invalid_argument (not a regular file, or too long),
/// system_error. The texts have the path and what to do.
Status read_own_file(const std::string& path, const OwnFile& file, std::string& text);

}  // namespace lrpc::shim
