// Parses the values of options, and describes what is expected where one is invalid, and what there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text) noexcept;
[[nodiscard]] std::optional<double> parse_rate(std::string_view text) noexcept;
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view text) noexcept;

[[nodiscard]] bool conforms(OptionType type, std::string_view value) noexcept;
/// "a number such as 8 or 0xa700".
[[nodiscard]] std::string_view describe(OptionType type) noexcept;

/// Whether a value, which conforms to the option's type, is in its range.
[[nodiscard]] bool in_range(const OptionDescription& option, std::string_view value) noexcept;
/// "1ms to 3600s", "at least 2" or "at most 64"; empty: there is no range.
[[nodiscard]] std::string describe_range(const OptionDescription& option);

/// A line for each kind, followed by a line for each of its options and micro-protocols.
[[nodiscard]] std::string describe(const ProtocolKinds& kinds);

}  // namespace lrpc::netrpc
