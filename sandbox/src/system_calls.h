// The groups of system calls, as rules of a filter.
#pragma once

#include <vector>

#include "lrpc/detail/sandbox/filter.h"
#include "lrpc/sandbox.h"

namespace lrpc::sandbox {

/// The rules of `groups` and of computing, for the calling process (they contain its pid).
std::vector<Rule> rules_of(const std::vector<Group>& groups);

}  // namespace lrpc::sandbox
