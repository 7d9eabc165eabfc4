// What stands in a credential of AUTH_SYS (RFC 5531, appendix A). Private to this folder.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lrpc/netrpc/control.h"
#include "netrpc/protocols/sun_auth/sun_auth.h"

namespace lrpc::netrpc::sun {

inline constexpr std::size_t kMostMachine = 255;    ///< Bytes of a machine's name that a peer may send,
inline constexpr std::size_t kMostOurMachine = 64;  ///< and that we send.
inline constexpr std::uint32_t kMostGids = 16;

/// Credential and (empty) verifier of each call, as they go over the wire. `stamp`: any number.
[[nodiscard]] std::vector<std::byte> encode_null();
[[nodiscard]] std::vector<std::byte> encode_sys(const AuthSysOptions& options, std::uint32_t stamp);
/// Nothing: `body` is no credential of AUTH_SYS.
[[nodiscard]] std::optional<control::ClaimedUser> decode_sys(std::span<const std::byte> body) noexcept;

}  // namespace lrpc::netrpc::sun
