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

/// Whether a sanitizer is on: then everything takes three to ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Whether LRPC_LONG_TESTS=1 is in the environment.
[[nodiscard]] inline bool long_tests_wanted() {
  const char* const wanted = std::getenv("LRPC_LONG_TESTS");
  return wanted != nullptr && *wanted != '\0' && std::string_view(wanted) != "0";
}
/// Whether tests that find more in more rounds run in their long form: if it is wanted, and without a sanitizer.
[[nodiscard]] inline bool long_tests() { return long_tests_wanted() && !kSanitized; }

/// The number of rounds: `few` usually, a third of that with a sanitizer; in the long form eight times as many, with a
/// sanitizer `few`.
[[nodiscard]] inline int rounds(int few) {
  if (long_tests()) return few * 8;
  return kSanitized && !long_tests_wanted() ? std::max(few / 3, 1) : few;
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
