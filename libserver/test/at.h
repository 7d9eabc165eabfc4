// A clock for tests of policies.
#pragma once

#include <cstdint>

#include "lrpc/detail/shim/system/moment.h"

namespace lrpc::server {

inline constexpr std::uint64_t kPerUs = 10;
constexpr shim::Moment at(std::uint64_t us) { return {us * kPerUs, kPerUs}; }

}  // namespace lrpc::server
