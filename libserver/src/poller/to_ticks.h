// Converts microseconds to ticks of the processor's counter.
#pragma once

#include <cstdint>

#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::server {

[[nodiscard]] inline std::uint64_t to_ticks(std::uint64_t microseconds) noexcept {
  return microseconds * shim::ticks_per_microsecond();
}

}  // namespace lrpc::server
