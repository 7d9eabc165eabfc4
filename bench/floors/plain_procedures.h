// The procedures of the four tests (LRPC §4) as plain functions: the cost of a call that crosses no domain.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lrpc::bench {

using Big = std::array<std::byte, 200>;

// Defined in a translation unit of their own, so that a caller cannot inline them.
void plain_null() noexcept;
std::int32_t plain_add(std::int32_t a, std::int32_t b) noexcept;
void plain_big_in(Big data) noexcept;  ///< By value: the caller copies, as it does onto an A-stack.
void plain_big_in_out(Big& data) noexcept;

}  // namespace lrpc::bench
