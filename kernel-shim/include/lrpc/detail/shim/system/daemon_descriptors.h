// What descriptors a daemon has: none that it did not ask for, and as many as it may.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lrpc::shim {

/// Raises the process's soft limit of descriptors to its hard one, for daemons whose peers take some each. Quietly does
/// what it can.
void raise_descriptor_limit() noexcept;
/// The process's soft limit of descriptors.
[[nodiscard]] std::uint64_t descriptor_limit() noexcept;
/// What the administrator should know of a daemon that serves no more than `most` of something, for it may have only
/// `descriptors`.
[[nodiscard]] std::string few_descriptors(std::string_view daemon, std::uint64_t most, std::string_view of_what,
                                          std::uint64_t descriptors);

/// Opens /dev/null in the place of each standard stream that the parent has closed: else a descriptor that is opened
/// later takes its number, and gets what is printed and logged. Before anything else of the process has any.
void open_standard_streams() noexcept;

/// Closes every descriptor above the standard ones but `keep` (negative: none), which a parent may have left open: a
/// sandbox leaves its process what is open. Before anything else of the process has any.
void close_inherited(int keep) noexcept;

}  // namespace lrpc::shim
