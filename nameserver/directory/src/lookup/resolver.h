// What the C library's resolver reads, also in the sandbox.
#pragma once

#include <array>
#include <span>
#include <string>

namespace lrpc::directory {

inline constexpr std::array kResolverFiles{"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf",
                                           "/etc/gai.conf"};

/// Those that are there and that this process may not read: in a sandbox, those that have been replaced by other files
/// since it began. The resolver goes on as if they were empty. "a, b"
[[nodiscard]] std::string forbidden_of(std::span<const char* const> files);

}  // namespace lrpc::directory
