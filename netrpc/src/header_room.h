// What a layer's header takes of the sizes that the layer below carries.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lrpc/netrpc/control.h"
#include "lrpc/shim/result.h"

namespace lrpc::netrpc {

/// For the answer `outcome` of the layer below to `request`, in a layer whose header has `size` bytes: that many fewer
/// are carried. Returns `outcome`.
[[nodiscard]] inline Errc less_header(Errc outcome, control::Request& request, std::size_t size) noexcept {
  if (outcome != Errc::ok) return outcome;
  if (auto* const maximum = std::get_if<control::MaximumMessage>(&request))
    maximum->size -= std::min(maximum->size, size);
  if (auto* const optimum = std::get_if<control::OptimumMessage>(&request))
    optimum->size -= std::min(optimum->size, size);
  return outcome;
}

}  // namespace lrpc::netrpc
