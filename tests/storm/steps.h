// The marked steps of the call path in this program (lrpc/detail/shim/call/step.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lrpc::storm {

/// One step, and all the places that it was inlined into.
struct Step {
  std::string name;
  std::vector<std::uintptr_t> places;
};

/// All steps of this program, by name. In processes that are forked from it they are at the same addresses.
[[nodiscard]] std::vector<Step> find_steps();

}  // namespace lrpc::storm
