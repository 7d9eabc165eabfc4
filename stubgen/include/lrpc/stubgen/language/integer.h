// An integer constant of an interface file: wide enough for every int64 and every uint64.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace lrpc::stubgen {

/// Sign and magnitude, so that -2^63 and 2^64-1 have one type without a 128-bit one. Zero is never negative.
struct Integer {
  bool negative = false;
  std::uint64_t magnitude = 0;

  constexpr Integer() = default;
  constexpr Integer(std::uint64_t value) : magnitude(value) {}  // NOLINT: implicit by design
  constexpr Integer(bool is_negative, std::uint64_t value) : negative(is_negative && value != 0), magnitude(value) {}

  friend constexpr bool operator==(const Integer&, const Integer&) = default;
  friend constexpr std::strong_ordering operator<=>(const Integer& a, const Integer& b) {
    if (a.negative != b.negative) return a.negative ? std::strong_ordering::less : std::strong_ordering::greater;
    return a.negative ? b.magnitude <=> a.magnitude : a.magnitude <=> b.magnitude;
  }
  /// The next larger one. The successor of 2^64-1 is out of this type's range and gives 2^64-1 again.
  [[nodiscard]] constexpr Integer next() const {
    if (negative) return {true, magnitude - 1};
    return {magnitude == UINT64_MAX ? magnitude : magnitude + 1};
  }
  [[nodiscard]] std::string text() const { return (negative ? "-" : "") + std::to_string(magnitude); }
};

}  // namespace lrpc::stubgen
