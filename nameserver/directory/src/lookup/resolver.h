// The files that the C library's resolver reads, also in the sandbox.
#pragma once

#include <array>
#include <span>
#include <string>

namespace lrpc::directory {

inline constexpr std::array kResolverFiles{"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf",
                                           "/etc/gai.conf"};

/// Those of `files` that exist and that this process may not read, as "a, b". In a sandbox these have been replaced by
/// other files since it was entered. The resolver treats them as empty.
[[nodiscard]] std::string forbidden_of(std::span<const char* const> files);

}  // namespace lrpc::directory
