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

/// All steps of this program, by name. Processes that are forked from it have them at the same places.
[[nodiscard]] std::vector<Step> find_steps();

}  // namespace lrpc::storm
