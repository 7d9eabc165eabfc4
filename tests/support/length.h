// How long the tests with random inputs run, and which inputs they get.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>

namespace testing_lrpc {

/// Whether the environment asks for the long runs: LRPC_LONG_TESTS=1. Without it, a random test does about a quarter of
/// that work.
[[nodiscard]] inline bool long_tests() {
  const char* const asked = std::getenv("LRPC_LONG_TESTS");
  return asked != nullptr && std::string_view(asked) == "1";
}

/// The seed of this process's random tests: the environment's LRPC_TEST_SEED, else a new one in each process. Show it
/// with SCOPED_TRACE, so that a failure can be repeated.
[[nodiscard]] inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* const given = std::getenv("LRPC_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 0) : std::uint64_t{std::random_device()()};
  }();
  return seed;
}

}  // namespace testing_lrpc
