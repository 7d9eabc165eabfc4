// The storm's random choices. One seed gives one schedule, as far as the kernel's scheduling allows.
#pragma once

#include <cstdint>
#include <random>

namespace lrpc::storm {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// From 0 to below `bound`.
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
  std::uint32_t between(std::uint32_t least, std::uint32_t most) { return least + below(most - least + 1); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  /// The time to the next event of a kind that comes every `mean` on average, at most 5 times that.
  std::uint64_t time_to_next(std::uint64_t mean) {
    const double drawn = std::exponential_distribution<double>(1.0)(engine_);
    return static_cast<std::uint64_t>(static_cast<double>(mean) * (drawn < 5 ? drawn : 5));
  }
  std::uint64_t seed() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace lrpc::storm
