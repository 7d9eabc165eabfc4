// What a layer's header takes of the sizes that layers tell each other.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lrpc/netrpc/control.h"
#include "lrpc/shim/result.h"

namespace lrpc::netrpc {

/// For the answer `outcome` to `request` on its way through a layer whose header has `size` bytes: what the layer below
/// carries is less by so much, what a layer above pushes is more. Returns `outcome`.
[[nodiscard]] inline Errc through_header(Errc outcome, control::Request& request, std::size_t size) noexcept {
  if (outcome != Errc::ok) return outcome;
  if (auto* const maximum = std::get_if<control::MaximumMessage>(&request))
    maximum->size -= std::min(maximum->size, size);
  if (auto* const optimum = std::get_if<control::OptimumMessage>(&request))
    optimum->size -= std::min(optimum->size, size);
  if (auto* const advertised = std::get_if<control::AdvertisedMaximum>(&request)) advertised->size += size;
  return outcome;
}

}  // namespace lrpc::netrpc
