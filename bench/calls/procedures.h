// The server's side of bench.lrpc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "bench.server.h"

namespace lrpc::bench {

/// The procedures do as little as their signatures allow: the benches time the call, not the work.
struct Procedures {
  using Data = std::array<std::byte, 200>;
  void Null(CallContext& /*context*/) noexcept {}
  std::int32_t Add(CallContext& /*context*/, std::int32_t a, std::int32_t b) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
  void BigIn(CallContext& /*context*/, const Data& /*data*/) noexcept {}
  void BigInUninterpreted(CallContext& /*context*/, const Data& /*data*/) noexcept {}
  void BigInOut(CallContext& /*context*/, Data& data) noexcept { data[0] ^= std::byte{1}; }
};

}  // namespace lrpc::bench
