// Landlock by bare system calls: its library is not everywhere, and Debian 12's headers know ABI 2 only.
#pragma once

#include "lrpc/sandbox.h"

namespace lrpc::sandbox {

struct LandlockReport {
  Part files;
  Part tcp;
  Part others;
};

/// Takes everything from the calling thread that `options` do not leave to it. No error: the report says why something
/// does not hold. Needs no_new_privs.
LandlockReport restrict_by_landlock(const Options& options);

}  // namespace lrpc::sandbox
