// A daemon's descriptors: none that it did not ask for, and as many as it is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lrpc::shim {

/// Raises the process's soft limit of descriptors to its hard limit, for daemons that need some for each peer. Ignores
/// failures.
void raise_descriptor_limit() noexcept;
/// The process's soft limit of descriptors.
[[nodiscard]] std::uint64_t descriptor_limit() noexcept;
/// A line for the administrator of a daemon that serves at most `most` of something, because it may have only
/// `descriptors`.
[[nodiscard]] std::string few_descriptors(std::string_view daemon, std::uint64_t most, std::string_view of_what,
                                          std::uint64_t descriptors);

/// A descriptor of /dev/null; where there is none (in a chroot), one that can be neither read nor written. Not
/// close-on-exec. Negative on failure.
[[nodiscard]] int open_null() noexcept;
/// Opens one for each standard stream that the parent has closed: otherwise a descriptor that is opened later takes its
/// number, and receives what is printed and logged. Call before the process opens any descriptor.
void open_standard_streams() noexcept;

/// Closes every descriptor above the standard ones except `keep` (negative: none). A parent may have left some open,
/// and a sandbox does not close them. Call before the process opens any descriptor.
void close_inherited(int keep) noexcept;

}  // namespace lrpc::shim
