// A file that decides something for its reader: a policy, a configuration, keys.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "lrpc/detail/shim/result.h"

namespace lrpc::shim {

struct OwnFile {
  std::size_t most = 0;      ///< Bytes that it may have.
  bool secret = false;       ///< Others may not read it either.
  uid_t user = ::geteuid();  ///< Whose it is, if not root's.
};

/// Reads a regular file that nobody else can write: whoever can write it decides in its reader's place. `text` holds
/// what was read, also after an error, and is the only memory that has held it: who reads a secret wipes it. Errors:
/// not_permitted (others can write the file, or read it), invalid_argument (it is no regular file, or too long),
/// system_error; the texts have its path and what to do.
Status read_own_file(const std::string& path, const OwnFile& file, std::string& text);

}  // namespace lrpc::shim
