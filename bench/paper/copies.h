// Counts the copies that generated stubs make of each argument class (LRPC §3.5, Table III).
#pragma once

#include <string_view>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// How many times one call copied each byte of the payload, by the paper's letters for copies.
struct CopyCount {
  std::string_view operation;  ///< One of the three of paper::kTableIII.
  std::string_view argument;   ///< scalar, array, bytes.
  unsigned a = 0;              ///< Client stack to A-stack.
  unsigned e = 0;              ///< A-stack to server stack.
  unsigned f = 0;              ///< Results, on the way to the client's destination.
};

/// Makes one call of each kind over a loopback binding. Requires stubs that were compiled with LRPC_COUNT_COPIES.
Result<std::vector<CopyCount>> count_copies();

}  // namespace lrpc::bench
