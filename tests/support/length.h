// How long random tests run, and their seed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

namespace testing_lrpc {

/// LRPC_LONG_TESTS=1 selects the long form of tests that find more in more rounds.
[[nodiscard]] inline bool long_tests() {
  const char* const wanted = std::getenv("LRPC_LONG_TESTS");
  return wanted != nullptr && *wanted != '\0' && std::string_view(wanted) != "0";
}

/// Whether a sanitizer is on: then everything takes three to ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// The number of rounds: `few` usually, a third of that with a sanitizer; eight times as many in the long form.
[[nodiscard]] inline int rounds(int few) {
  if (long_tests()) return few * 8;
  return kSanitized ? std::max(few / 3, 1) : few;
}

/// The seed of this run: $LRPC_TEST_SEED, or a random one. To repeat a failed test, set the printed seed.
[[nodiscard]] inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* const wanted = std::getenv("LRPC_TEST_SEED");
    const std::uint64_t chosen = wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device()();
    std::fprintf(stderr, "LRPC_TEST_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  testing::Test::RecordProperty("LRPC_TEST_SEED", std::to_string(seed));
  return seed;
}

}  // namespace testing_lrpc
